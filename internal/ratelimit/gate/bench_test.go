package gate_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redisrate "github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/servers"
)

// contender is a limiter under comparison. allow decides one request.
type contender struct {
	name    string
	allow   func(ctx context.Context) bool
	calls   func() int64 // Redis calls so far
	gated   bool
	bounded bool // admits at most burst + rate × T over all nodes
}

// result holds the measurements of one contender under overload.
type result struct {
	decisions, admitted, calls int64
	took                       time.Duration
}

func (r result) perSecond() float64 { return float64(r.decisions) / r.took.Seconds() }
func (r result) perCall() float64   { return float64(r.calls) / float64(r.decisions) }

// overload runs concurrent callers without pauses.
func overload(c contender, callers int, length time.Duration) result {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var decisions, admitted atomic.Int64
	var all sync.WaitGroup
	began, calls := time.Now(), c.calls()
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				if c.allow(context.Background()) {
					admitted.Add(1)
				}
				decisions.Add(1)
			}
		})
	}
	all.Wait()
	return result{decisions.Load(), admitted.Load(), c.calls() - calls, time.Since(began)}
}

const benchRate = 1000

// contenders returns all limiters on one Redis with the same limit: 1000/s, one second of burst, no
// waiting.
func contenders(t testing.TB, addr string) []contender {
	terms := termsOf(t, ratelimit.Limit{
		Algorithm: ratelimit.TokenBucket, PermitsPerSecond: benchRate, MaxBurstSeconds: 1,
	})
	client := promptClient(t, addr)
	patient := steadyClient(t, addr)
	direct, directCalls := redislimit.New(patient, nil), atomic.Int64{}
	other, otherCalls := redisrate.NewLimiter(patient), atomic.Int64{}
	local := rate.NewLimiter(benchRate, benchRate)
	b := book(t, `{rules: [
		{name: kept, by: [goods], algorithm: token_bucket, permitsPerSecond: 1000},
		{name: leased, by: [goods], algorithm: token_bucket, permitsPerSecond: 1000, leases: 10}]}`)
	return []contender{
		{name: "direct", bounded: true, calls: directCalls.Load, allow: func(ctx context.Context) bool {
			directCalls.Add(1)
			d, err := direct.TakeEach(ctx, ratelimit.Request{Key: "direct", Params: terms, N: 1})
			return err == nil && d[0].Allowed
		}},
		{name: "redis_rate", calls: otherCalls.Load, allow: func(ctx context.Context) bool {
			otherCalls.Add(1)
			res, err := other.Allow(ctx, "other", redisrate.PerSecond(benchRate))
			return err == nil && res.Allowed > 0
		}},
		{
			name:  "x/time/rate (one node)",
			calls: func() int64 { return 0 },
			allow: func(context.Context) bool { return local.Allow() },
		},
		gated(t, "gate: denials kept", "kept", 1, b, client),
		gated(t, "gate: with leases", "leased", 1, b, client),
		gated(t, "4 nodes, denials kept", "kept", 4, b, client),
		gated(t, "4 nodes, with leases", "leased", 4, b, client),
	}
}

// gated returns a contender with one gate per node and a goods of its own.
func gated(
	t testing.TB, name, rule string, nodes int64, b *rules.Rulebook, client *redis.Client,
) contender {
	meter := &counters{}
	gates := make([]*gate.Gate, nodes)
	for i := range gates {
		gates[i] = newGate(t, b, redislimit.New(client, nil), gate.Options{Count: meter.count})
	}
	turn := atomic.Int64{}
	return contender{
		name: name, gated: true, bounded: true,
		calls: func() int64 { return meter.of(gate.EventRedisCall) },
		allow: func(ctx context.Context) bool {
			g := gates[turn.Add(1)%nodes]
			out, err := g.Decide(ctx, goods(nodes), gate.Check{Rule: rule})
			return err == nil && out.Allowed && !out.Degraded
		},
	}
}

// TestGate_OverloadSideBySide compares the limiters under overload. It always checks the Redis
// calls per decision and the admitted count. It requires the speed factor only with
// RATELIMIT_BENCH, because a busy machine distorts it.
func TestGate_OverloadSideBySide(t *testing.T) {
	length, full := 500*time.Millisecond, os.Getenv("RATELIMIT_BENCH") != ""
	if full {
		length = 4 * time.Second
	}
	addr := servers.Redis(t).Addr()
	results := map[string]result{}
	for _, c := range contenders(t, addr) {
		r := overload(c, 64, length)
		results[c.name] = r
		t.Logf(
			"%-24s %10.0f decisions/s  %9.6f Redis calls/decision  %8.0f calls/s  %6d admitted in %v",
			c.name, r.perSecond(), r.perCall(), float64(r.calls)/r.took.Seconds(), r.admitted, r.took.Round(ms))
		if c.bounded {
			require.LessOrEqual(t, float64(r.admitted),
				benchRate+benchRate*r.took.Seconds()+4*10+1, c.name)
		}
		if c.gated {
			require.LessOrEqual(t, r.perCall(), 0.1, c.name)
			require.GreaterOrEqual(t, float64(r.admitted),
				0.7*(benchRate+benchRate*r.took.Seconds()), c.name)
		}
	}
	if full {
		require.GreaterOrEqual(t, results["gate: with leases"].perSecond(),
			20*results["direct"].perSecond())
	}
}

func BenchmarkDecideFromMemory(b *testing.B) {
	g := inMemory(b,
		`{rules: [{name: r, by: [goods], algorithm: token_bucket, permitsPerSecond: 0.001, burst: 1}]}`, nil)
	for b.Loop() {
		if _, err := g.Decide(context.Background(), goods(1), gate.Check{Rule: "r"}); err != nil {
			b.Fatal(err)
		}
	}
}
