package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/ratelimit"
)

// A limiter in this process: three permits at once, then one each minute.
func Example() {
	limiter, err := ratelimit.New(ratelimit.Memory(), ratelimit.Limit{
		Permits: 1, Per: time.Minute, Burst: 3,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	for range 4 {
		d, err := limiter.Allow(context.Background(), "alice", 1)
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 2 <nil>
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
}

// Processes that use the same Redis and prefix share the permits of a key.
func ExampleRedis() {
	server, err := miniredis.Run() // stands for your Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1,
	})
	defer client.Close()
	limiter, err := ratelimit.New(ratelimit.Redis(client),
		ratelimit.Limit{Permits: 5, Per: time.Hour},
		ratelimit.Prefix("login:"), ratelimit.Timeout(time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	ctx := context.Background()
	first, err := limiter.Allow(ctx, "alice", 4)
	fmt.Println(first.Allowed, first.Remaining, err)
	second, err := limiter.Allow(ctx, "alice", 2)
	fmt.Println(second.Allowed, second.Never, err)
	fmt.Println(server.Exists("login:alice"))
	// Output:
	// true 1 <nil>
	// false false <nil>
	// true
}

// A caller that can wait reserves permits, and gives them back if it no longer needs them.
func ExampleLimiter_Reserve() {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	limiter, err := ratelimit.New(ratelimit.Memory(),
		ratelimit.Limit{Permits: 1, Per: time.Second, MaxWait: 2 * time.Second},
		ratelimit.Clock(func() time.Time { return at }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	for range 4 {
		r, err := limiter.Reserve(context.Background(), "printer", 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Allowed, r.Delay, r.RetryAfter)
		if r.Delay == 2*time.Second {
			r.Cancel()
		}
	}
	// Output:
	// true 0s 0s
	// true 1s 0s
	// true 2s 0s
	// true 2s 0s
}

// Wait returns when the permits are good, or at once if they cannot be good in time.
func ExampleLimiter_Wait() {
	limiter, err := ratelimit.New(ratelimit.Memory(),
		ratelimit.Limit{Permits: 1, Per: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	ctx := context.Background()
	fmt.Println(limiter.Wait(ctx, "backup", 1))
	fmt.Println(errors.Is(limiter.Wait(ctx, "backup", 1), ratelimit.ErrLimited))
	// Output:
	// <nil>
	// true
}
