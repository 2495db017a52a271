package connect

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/testing/servers"
)

func TestRedisOf_UsesTheSentinelsPassword(t *testing.T) {
	master := servers.Redis(t)
	sentinel := servers.Sentinel(t, master)
	admin := redis.NewClient(&redis.Options{Addr: sentinel.Addr()})
	defer admin.Close()
	require.NoError(t,
		admin.Do(t.Context(), "ACL", "SETUSER", "default", "resetpass", ">only they know").Err())

	knows := config.Redis{Addrs: []string{
		sentinel.Addr(),
	}, SentinelMaster: servers.SentinelMaster, SentinelSecret: "only they know"}
	client := RedisOf(knows)
	defer client.Close()
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, time.Minute,
		20*time.Millisecond)

	guesses := knows
	guesses.SentinelSecret = "a guess"
	stranger := RedisOf(guesses)
	defer stranger.Close()
	require.Error(t, stranger.Ping(t.Context()).Err())
}
