package redislimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/servers"
)

func newClient(t testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// oneOfThousand returns a request for one permit of the default rule of /randomPath.
func oneOfThousand(b *testing.B) ratelimit.Request {
	terms, err := ratelimit.Limit{
		Algorithm: ratelimit.Reserve, PermitsPerSecond: 1000,
		MaxBurstSeconds: 1, MaxWaitMillis: 1000,
	}.Params()
	require.NoError(b, err)
	return ratelimit.Request{Key: "k", Params: terms, N: 1, MaxWait: time.Second}
}

func BenchmarkRedisTake(b *testing.B) {
	r := redislimit.New(newClient(b, servers.Redis(b).Addr()), nil)
	ask := oneOfThousand(b)
	for b.Loop() {
		if _, err := r.TakeEach(context.Background(), []ratelimit.Request{ask}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRedisTakeBatch(b *testing.B) {
	r := redislimit.New(newClient(b, servers.Redis(b).Addr()), nil)
	ask := oneOfThousand(b)
	groups := make([][]ratelimit.Request, 100)
	for i := range groups {
		groups[i] = []ratelimit.Request{ask}
	}
	for b.Loop() {
		if _, err := r.TakeEach(context.Background(), groups...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMiniredisTake(b *testing.B) {
	r := redislimit.New(newClient(b, miniredis.RunT(b).Addr()), nil)
	ask := oneOfThousand(b)
	for b.Loop() {
		if _, err := r.TakeEach(context.Background(), []ratelimit.Request{ask}); err != nil {
			b.Fatal(err)
		}
	}
}
