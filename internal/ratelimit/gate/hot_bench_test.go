package gate_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	redisrate "github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// BenchmarkGate_Decide asks for one hot key, of which nearly all requests are denied, and for
// 50,000 keys. With scope global the hot key's answers come from the denial cache.
func BenchmarkGate_Decide(b *testing.B) {
	for _, scope := range []string{"node", "global"} {
		for _, keys := range []int{1, 50_000} {
			b.Run(fmt.Sprintf("%s/%d", scope, keys), func(b *testing.B) {
				shared := gate.Store(ratelimit.NewMemory(nil))
				if keys > 1 && scope == "global" {
					shared = redislimit.New(steadyClient(b, servers.Redis(b).Addr()), nil)
				}
				g := newGate(b, book(b, `{rules: [{name: r, by: [user], algorithm: token_bucket,
					permitsPerSecond: 1000, scope: `+scope+`}]}`), shared,
					gate.Options{Deadline: unhurried})
				users := make([]string, keys)
				for i := range users {
					users[i] = fmt.Sprintf("user-%d", i)
				}
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					_, _ = g.Decide(context.Background(), rules.Attributes{User: users[i%keys]},
						gate.Check{Rule: "r"})
					i++
				}
			})
		}
	}
}

// redisTime is Redis' processor time since its start, and the part of it in which scripts ran.
func redisTime(b *testing.B, client *redis.Client) (all, scripts float64) {
	info := must.Get(client.Info(b.Context(), "cpu", "commandstats").Result())(b)
	for name, unit := range map[string]float64{
		"used_cpu_user:": 1e6, "used_cpu_sys:": 1e6, "cmdstat_evalsha:calls=[0-9]+,usec=": 1,
	} {
		found := regexp.MustCompile("(?m)^" + name + "([0-9.]+)").FindStringSubmatch(info)
		if found == nil {
			continue // no script has run
		}
		if µs := unit * must.Get(strconv.ParseFloat(found[1], 64))(b); unit > 1 {
			all += µs
		} else {
			scripts += µs
		}
	}
	return all, scripts
}

// BenchmarkDirect asks Redis for each decision, 16 callers at once: this project's store and
// redis_rate, with the same client and limit. Nearly all requests are denied, or all are allowed.
// It reports what a decision takes of Redis' processor time, in the script and in all.
func BenchmarkDirect(b *testing.B) {
	client := steadyClient(b, servers.Redis(b).Addr())
	store, other := redislimit.New(client, nil), redisrate.NewLimiter(client)
	for _, perSecond := range []int{1, 1_000_000} {
		ask := ratelimit.Request{Key: fmt.Sprint("ours", perSecond), N: 1, Params: paramsOf(b,
			ratelimit.Limit{
				Algorithm: ratelimit.TokenBucket, PermitsPerSecond: float64(perSecond),
				Burst: int64(perSecond),
			})}
		key := fmt.Sprint("redis_rate", perSecond)
		for name, call := range map[string]func(context.Context) error{
			"ours": func(ctx context.Context) error {
				_, err := store.TakeEach(ctx, ask)
				return err
			},
			"redis_rate": func(ctx context.Context) error {
				_, err := other.Allow(ctx, key, redisrate.PerSecond(perSecond))
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, perSecond), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(8)
				before, scriptsBefore := redisTime(b, client)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := call(b.Context()); err != nil {
							b.Error(err)
						}
					}
				})
				all, scripts := redisTime(b, client)
				b.ReportMetric((all-before)/float64(b.N), "Redis-µs/op")
				b.ReportMetric((scripts-scriptsBefore)/float64(b.N), "script-µs/op")
			})
		}
	}
}
