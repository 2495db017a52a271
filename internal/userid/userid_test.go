package userid

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValid_PrintableASCIIWithoutSpaces(t *testing.T) {
	for _, id := range []string{
		"7", "007", "-1", "!", "~", "auth0|5f7c8ec7c33c6c004bbafe82",
		"248289761001", "Ann", strings.Repeat("x", MaxLen),
	} {
		require.True(t, Valid(id), id)
	}
	for _, id := range []string{
		"", " ", "a b", "a\n", "é", "李雷", "\x7f", strings.Repeat("x", MaxLen+1),
	} {
		require.False(t, Valid(id), id)
	}
}

// TestAppendSigned_KeepsNumbers has the bytes that earlier releases signed, and no two ids with the
// same ones.
func TestAppendSigned_KeepsNumbers(t *testing.T) {
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 7}, AppendSigned(nil, "7"))
	require.Equal(t, []byte("p\x7f\xff\xff\xff\xff\xff\xff\xff"),
		AppendSigned([]byte("p"), "9223372036854775807"))
	seen := map[string]string{}
	for _, id := range []string{
		"7", "07", "+7", "-7", "\x00\x00\x00\x00\x00\x00\x00\x07", "9223372036854775808",
		"2387225703656530209", "!!!!!!!!", "0", "00", "",
	} {
		signed := string(AppendSigned(nil, id))
		require.NotContains(t, seen, signed, "%q", id)
		seen[signed] = id
	}
}
