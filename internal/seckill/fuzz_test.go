package seckill

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzCheckPath: a random path is 32 lower-case hex digits, and nothing else is one.
func FuzzCheckPath(f *testing.F) {
	f.Add("0f343b0931126a20f133d67c2b018a3b")
	f.Add("0F343B0931126A20F133D67C2B018A3B")
	f.Add("0f343b0931126a20f133d67c2b018a3\n")
	like := regexp.MustCompile(`\A[0-9a-f]{32}\z`)
	f.Fuzz(func(t *testing.T, path string) {
		require.Equal(t, like.MatchString(path), CheckPath(path) == nil)
	})
}
