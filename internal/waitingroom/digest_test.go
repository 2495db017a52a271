package waitingroom

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

func TestChain_EqualsRedisLua(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: servers.Redis(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	digest := ""
	for i, line := range []string{"7:1", "8:2 9:3", "", "-1:4 9223372036854775807:5"} {
		next, err := client.Eval(context.Background(), "return redis.sha1hex(ARGV[1] .. ARGV[2])",
			nil, digest, line).Text()
		require.NoError(t, err)
		require.Equal(t, next, Chain(digest, line), "line %d", i)
		digest = next
	}
}

func TestChain_ChangesWithEachJoinAndGroup(t *testing.T) {
	chain := func(lines ...string) (digest string) {
		for _, line := range lines {
			digest = Chain(digest, line)
		}
		return digest
	}
	seen := map[string]string{}
	for _, lines := range [][]string{
		nil,
		{"1:1"},
		{"2:1"},
		{"1:1", "2:2"},
		{"1:1 2:2"},
		{"2:1", "1:2"},
		{"1:1", "2:2", "3:3"},
	} {
		digest, name := chain(lines...), fmt.Sprint(lines)
		require.Empty(t, seen[digest], "%s and %s", name, seen[digest])
		seen[digest] = name
	}
}
