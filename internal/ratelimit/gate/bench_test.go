package gate_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redisrate "github.com/go-redis/redis_rate/v10"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/servers"
)

// overload runs 64 callers without pauses. It returns how many decisions they got, and how many
// admissions.
func overload(length time.Duration, allow func() bool) (decisions, admitted float64) {
	var all sync.WaitGroup
	var counts [2]atomic.Int64
	end := time.Now().Add(length)
	for range 64 {
		all.Go(func() {
			for time.Now().Before(end) {
				if allow() {
					counts[1].Add(1)
				}
				counts[0].Add(1)
			}
		})
	}
	all.Wait()
	return float64(counts[0].Load()), float64(counts[1].Load())
}

// TestGate_OverloadIsBoundedInCallsAndPermits compares limiters with the same limit under overload:
// 1000/s, one second of burst, no waiting. It always checks the Redis calls per decision and the
// highest admitted count of this project's own. It requires the lowest count and the speed factor
// only with RATELIMIT_BENCH, because both depend on the machine's other load.
func TestGate_OverloadIsBoundedInCallsAndPermits(t *testing.T) {
	length, full := 500*time.Millisecond, os.Getenv("RATELIMIT_BENCH") != ""
	if full {
		length = 4 * time.Second
	}
	ctx := context.Background()
	addr := servers.Redis(t).Addr()
	patient := steadyClient(t, addr)
	direct, other := redislimit.New(patient, nil), redisrate.NewLimiter(patient)
	local, meter := rate.NewLimiter(1000, 1000), &counters{}
	ask := ratelimit.Request{Key: "direct", N: 1, Params: paramsOf(t, ratelimit.Limit{
		Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1000, MaxBurstSeconds: 1,
	})}
	g := newGate(t, book(t, `{rules: [
		{name: kept, by: [goods], algorithm: token_bucket, permitsPerSecond: 1000},
		{name: leased, by: [goods], algorithm: token_bucket, permitsPerSecond: 1000, leases: 10}]}`),
		redislimit.New(promptClient(t, addr), nil), gate.Options{Count: meter.count})
	gated := func(rule string) func() bool {
		return func() bool {
			out, err := g.Decide(ctx, goods(1), gate.Check{Rule: rule})
			return err == nil && out.Allowed && !out.Degraded
		}
	}
	speeds := map[string]float64{}
	for _, c := range []struct {
		name       string
		ours, gate bool
		allow      func() bool
	}{
		{"direct", true, false, func() bool {
			d, err := direct.TakeEach(ctx, ask)
			return err == nil && d[0].Allowed
		}},
		{"redis_rate", false, false, func() bool {
			res, err := other.Allow(ctx, "other", redisrate.PerSecond(1000))
			return err == nil && res.Allowed > 0
		}},
		{"x/time/rate (one node)", false, false, local.Allow},
		{"gate: denials kept", true, true, gated("kept")},
		{"gate: with leases", true, true, gated("leased")},
	} {
		began, calls := time.Now(), meter.of(gate.EventRedisCall)
		decisions, admitted := overload(length, c.allow)
		took := time.Since(began)
		speeds[c.name] = decisions / took.Seconds()
		perCall := float64(meter.of(gate.EventRedisCall)-calls) / decisions
		t.Logf("%-24s %10.0f decisions/s  %9.6f gate's Redis calls/decision  %6.0f admitted in %v",
			c.name, speeds[c.name], perCall, admitted, took.Round(ms))
		bound := 1000 + 1000*took.Seconds()
		if c.ours {
			require.LessOrEqual(t, admitted, bound+10+1, c.name)
		}
		if c.gate {
			require.LessOrEqual(t, perCall, 0.1, c.name)
			require.Positive(t, admitted, c.name)
		}
		if c.gate && full {
			require.GreaterOrEqual(t, admitted, 0.7*bound, c.name)
		}
	}
	if full {
		require.GreaterOrEqual(t, speeds["gate: with leases"], 20*speeds["direct"])
	}
}
