package installation

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// RedisCalls counts the commands that clients have sent to a Redis for buyers: scripts, and removals from the outbox.
func RedisCalls(tb testing.TB, client redis.UniversalClient) (calls int64) {
	tb.Helper()
	text, err := client.Info(context.WithoutCancel(tb.Context()), "commandstats").Result()
	require.NoError(tb, err)
	for line := range strings.Lines(text) {
		for _, name := range []string{"evalsha", "eval", "xdel"} {
			if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
				number, _, _ := strings.Cut(rest, ",")
				n, err := strconv.ParseInt(number, 10, 64)
				require.NoError(tb, err)
				calls += n
			}
		}
	}
	return calls
}
