package waitingroom

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeed_HexIsParsed(t *testing.T) {
	s := NewSeed()
	require.NotEqual(t, s, NewSeed())
	parsed, err := ParseSeed(s.Hex())
	require.NoError(t, err)
	require.Equal(t, s, parsed)
	for _, text := range []string{"", s.Hex()[1:], s.Hex() + "0", "g" + s.Hex()[1:]} {
		_, err := ParseSeed(text)
		require.ErrorIs(t, err, errBadSeed, "%q", text)
	}
}

func TestSeed_CommitmentIsSHA256(t *testing.T) {
	// printf '%064d' 0 | xxd -r -p | sha256sum
	const want = "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925"
	require.Equal(t, want, Seed{}.Commitment())
}

func TestSeed_IsNotPrinted(t *testing.T) {
	s := NewSeed()
	text := fmt.Sprintf("%v %+v %s", s, struct{ Seed Seed }{s}, &s)
	require.Equal(t, 3, strings.Count(text, "***"), text)
}
