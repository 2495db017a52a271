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

func BenchmarkRedisTake(b *testing.B) {
	terms, err := ratelimit.DefaultLimit().Terms()
	require.NoError(b, err)
	r := redislimit.New(newClient(b, servers.Redis(b).Addr()))
	ask := ratelimit.Ask{Key: "k", Terms: terms, N: 1, MaxWait: time.Second}
	for b.Loop() {
		if _, err := r.Take(context.Background(), ask); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRedisTakeBatch(b *testing.B) {
	terms, err := ratelimit.DefaultLimit().Terms()
	require.NoError(b, err)
	r := redislimit.New(newClient(b, servers.Redis(b).Addr()))
	groups := make([][]ratelimit.Ask, 100)
	for i := range groups {
		groups[i] = []ratelimit.Ask{{Key: "k", Terms: terms, N: 1, MaxWait: time.Second}}
	}
	for b.Loop() {
		if _, err := r.TakeEach(context.Background(), groups...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMiniredisTake(b *testing.B) {
	terms, err := ratelimit.DefaultLimit().Terms()
	require.NoError(b, err)
	r := redislimit.New(newClient(b, miniredis.RunT(b).Addr()))
	ask := ratelimit.Ask{Key: "k", Terms: terms, N: 1, MaxWait: time.Second}
	for b.Loop() {
		if _, err := r.Take(context.Background(), ask); err != nil {
			b.Fatal(err)
		}
	}
}
