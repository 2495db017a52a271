package reservation

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzCheckPath compares CheckPath with a regular expression.
func FuzzCheckPath(f *testing.F) {
	f.Add("0f343b0931126a20f133d67c2b018a3b")
	f.Add("0F343B0931126A20F133D67C2B018A3B")
	f.Add("0f343b0931126a20f133d67c2b018a3\n")
	like := regexp.MustCompile(`\A[0-9a-f]{32}\z`)
	f.Fuzz(func(t *testing.T, path string) {
		require.Equal(t, like.MatchString(path), CheckPath(path) == nil)
	})
}

func TestCheckPath_AcceptsOnly32LowerCaseHexDigits(t *testing.T) {
	good := strings.Repeat("0a", 16)
	require.NoError(t, CheckPath(good))
	for _, bad := range []string{
		"", good[1:], good + "0", strings.ToUpper(good), good[:31] + "g", good[:30] + "é",
	} {
		require.Error(t, CheckPath(bad), "%q", bad)
	}
}
