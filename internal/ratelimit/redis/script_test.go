package redislimit_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/scripts/lua"
)

// TestScripts_HeadersNameAllArguments compares each script's header with its body. The header names
// every KEYS and ARGV entry that the body reads. No script computes a key.
func TestScripts_HeadersNameAllArguments(t *testing.T) {
	for _, name := range []string{"ratelimit_decide", "ratelimit_sync"} {
		source := lua.Source(name)
		header, body, ok := strings.Cut(source, "\n\n")
		require.True(t, ok)
		require.Contains(t, header, "-- KEYS[")
		require.Contains(t, header, "-- Returns")
		for _, used := range regexp.MustCompile(`(KEYS|ARGV)\[(\d+)\]`).FindAllString(body, -1) {
			require.Contains(t, header, used, "%s reads %s", name, used)
		}
		require.NotRegexp(t, `redis\.p?call\('[A-Z]+', [^)]*\.\.`, body,
			"a key is built in the script")
	}
	require.Contains(t, lua.Source("ratelimit_decide"), "local STRIDE = 11")
	require.Panics(t, func() { lua.Source("none") })
}
