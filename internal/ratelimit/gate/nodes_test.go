package gate_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/property"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// mostInAnyWindow returns the largest excess of permits over rate × T in any window. That excess is
// the burst that the limiter admitted. good holds the sorted times at which the permits become
// valid.
func mostInAnyWindow(good []time.Time, rate float64) float64 {
	lowest, most := math.Inf(1), 0.0
	for i, at := range good {
		paid := rate * at.Sub(good[0]).Seconds()
		lowest = min(lowest, float64(i)-paid)
		most = max(most, float64(i+1)-paid-lowest)
	}
	return most
}

// TestGate_AnyWindowIsBounded sends random traffic to several nodes on a test clock. Every window
// admits at most burst + rate × T. With leases it admits at most nodes × lease more.
func TestGate_AnyWindowIsBounded(t *testing.T) {
	client := steadyClient(t, servers.Redis(t).Addr())
	runs := int64(0)
	property.Check(t, func(t *rapid.T) {
		runs++
		nodes := rapid.SampledFrom([]int{1, 8}).Draw(t, "nodes")
		leases := rapid.SampledFrom([]int64{0, 10}).Draw(t, "leases")
		clock := testclock.New()
		var store gate.Store = ratelimit.NewMemory(clock.Now)
		if runs%2 == 0 {
			store = redislimit.New(client, clock.Now)
		}
		const rate, burst = 1000.0, 100
		b := book(t, fmt.Sprintf(`{rules: [{name: r, by: [goods], algorithm: token_bucket, permitsPerSecond: 1000,
			burst: %d, leases: %d}]}`, burst, leases))
		gates := make([]*gate.Gate, nodes)
		for i := range gates {
			gates[i] = gate.New(b, store, gate.Options{Now: clock.Now, Deadline: time.Minute})
			defer gates[i].Close()
		}
		good := playTraffic(t, gates, clock, goods(runs))
		allowance := float64(burst)
		if leases > 1 {
			allowance += float64(int64(nodes) * leases)
		}
		require.LessOrEqual(t, mostInAnyWindow(good, rate), allowance+1e-6)
	})
}

// playTraffic sends bursts with pauses to random nodes.
func playTraffic(
	t *rapid.T, gates []*gate.Gate, clock *testclock.Clock, attrs rules.Attributes,
) []time.Time {
	var good []time.Time
	for range rapid.IntRange(1, 30).Draw(t, "rushes") {
		clock.Add(time.Duration(rapid.IntRange(0, 300_000).Draw(t, "lull µs")) * us)
		step := time.Duration(rapid.IntRange(0, 900).Draw(t, "step µs")) * us
		for range rapid.IntRange(1, 60).Draw(t, "callers") {
			g := gates[rapid.IntRange(0, len(gates)-1).Draw(t, "node")]
			out := must.Get(g.Decide(context.Background(), attrs, gate.Check{Rule: "r"}))(t)
			require.False(t, out.Degraded)
			if out.Allowed {
				good = append(good, clock.Now().Add(out.Decision.Wait))
			}
			clock.Add(step)
		}
	}
	return good
}

// TestGate_TwoNodesShareOneRate runs two nodes with 100 callers each under the default rule of
// /randomPath. Nodes share nothing but Redis. Together they admit one limit's permits, and each
// node gets a share.
func TestGate_TwoNodesShareOneRate(t *testing.T) {
	length, least := 3*time.Second, 0.8
	if os.Getenv("RATELIMIT_BENCH") != "" { // on a quiet machine
		length, least = 10*time.Second, 0.99
	}
	addr := servers.Redis(t).Addr()
	var admitted [2]atomic.Int64 // permits that are valid by the end
	var gates [2]*gate.Gate
	for i := range gates {
		b := must.Get(rules.New(rules.Defaults()...))(t)
		gates[i] = newGate(t, b, redislimit.New(steadyClient(t, addr), nil),
			gate.Options{Deadline: unhurried})
		decide(t, gates[i], "randomPath", goods(2)) // connects before the time runs
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var all sync.WaitGroup
	for i, g := range gates {
		for range 100 {
			all.Go(func() { admitted[i].Add(callUntil(ctx, g)) })
		}
	}
	all.Wait()
	total := float64(admitted[0].Load() + admitted[1].Load())
	want := 1000 + 1000*length.Seconds()
	t.Logf("admitted %.0f, %.2f %% of burst + rate × T", total, 100*total/want)
	took := time.Since(began).Seconds() // a busy machine ends the callers late
	require.LessOrEqual(t, total, 1000+1000*took+20)
	require.GreaterOrEqual(t, total, least*want)
	for i := range admitted {
		require.Greater(t, float64(admitted[i].Load()), 0.25*total,
			"each node gets more than a quarter")
	}
}

func callUntil(ctx context.Context, g *gate.Gate) int64 {
	n := int64(0)
	for ctx.Err() == nil {
		out, err := g.Decide(context.WithoutCancel(ctx), goods(1), gate.Check{Rule: "randomPath"})
		if err == nil && out.Allowed && out.Wait(ctx) == nil {
			n++
		}
	}
	return n
}
