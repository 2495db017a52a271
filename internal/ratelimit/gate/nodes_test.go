package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	rapid.Check(t, func(t *rapid.T) {
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
			out, err := g.Decide(context.Background(), attrs, gate.Check{Rule: "r"})
			require.NoError(t, err)
			require.False(t, out.Degraded)
			if out.Allowed {
				good = append(good, clock.Now().Add(out.Decision.Wait))
			}
			clock.Add(step)
		}
	}
	return good
}

// nodeRun holds the parameters and results of one process of TestGate_TwoProcessesShareOneRate.
type nodeRun struct {
	Addr       string
	Begin, End time.Time
	Callers    int
}

const nodeEnv = "RATELIMIT_TEST_NODE"

// TestGate_TwoProcessesShareOneRate runs two processes with 100 callers each under the default rule
// of /randomPath. Together they admit one limit's permits, and each process gets a share.
func TestGate_TwoProcessesShareOneRate(t *testing.T) {
	if reported := os.Getenv(nodeEnv); reported != "" {
		playNode(t, reported)
		return
	}
	length := 10 * time.Second
	if testing.Short() {
		length = 2 * time.Second
	}
	addr := servers.Redis(t).Addr()
	begin := time.Now().Add(5 * time.Second) // time for both processes to start
	run := nodeRun{Addr: addr, Begin: begin, End: begin.Add(length), Callers: 100}
	var counts [2]int64
	var both sync.WaitGroup
	for i := range counts {
		both.Go(func() { counts[i] = startNode(t, run) })
	}
	both.Wait()
	total, want := float64(counts[0]+counts[1]), 1000+1000*length.Seconds()
	t.Logf("admitted %d and %d, %.2f %% of burst + rate × T", counts[0], counts[1], 100*total/want)
	require.InEpsilon(t, want, total, 0.01)
	for _, n := range counts {
		require.Greater(t, float64(n), 0.25*total, "each process gets more than a quarter")
	}
}

func startNode(t *testing.T, run nodeRun) int64 {
	reported, err := json.Marshal(run)
	if err != nil {
		t.Error(err)
		return 0
	}
	out := filepath.Join(t.TempDir(), "count")
	cmd := exec.CommandContext(t.Context(), os.Args[0],
		"-test.run=^TestGate_TwoProcessesShareOneRate$")
	cmd.Env = append(os.Environ(), nodeEnv+"="+string(reported), nodeEnv+"_OUT="+out)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("node: %v\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Error(err)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n
}

// playNode is one process of the test. Its callers take permits until the end. It counts the
// permits that are valid by then.
func playNode(t *testing.T, reported string) {
	var run nodeRun
	require.NoError(t, json.Unmarshal([]byte(reported), &run))
	b, err := rules.New(rules.Defaults()...)
	require.NoError(t, err)
	g := newGate(t, b, redislimit.New(steadyClient(t, run.Addr), nil),
		gate.Options{Deadline: unhurried})
	ctx, cancel := context.WithDeadline(t.Context(), run.End)
	defer cancel()
	require.Positive(t, time.Until(run.Begin), "the node started after the common start time")
	<-time.After(time.Until(run.Begin))
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range run.Callers {
		all.Go(func() { admitted.Add(callUntil(ctx, g)) })
	}
	all.Wait()
	require.NoError(t,
		os.WriteFile(os.Getenv(nodeEnv+"_OUT"), fmt.Append(nil, admitted.Load()), 0o600))
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
