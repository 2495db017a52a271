package gate_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// crowd is a node whose callers all ask in the same instant of a test clock.
type crowd struct {
	gate.Store
	gate    *gate.Gate
	own     *ratelimit.Limit // in place of the rule's
	pending atomic.Int64     // callers without a decision
	calls   atomic.Int64
}

// TakeEach answers once every pending caller waits for it, so that callers share their calls on
// every machine alike.
func (c *crowd) TakeEach(
	ctx context.Context, requests ...ratelimit.Request,
) ([]ratelimit.Decision, error) {
	for c.gate.Waiting("r", "1") < c.pending.Load() && ctx.Err() == nil {
		runtime.Gosched()
	}
	c.calls.Add(1)
	return c.Store.TakeEach(ctx, requests...)
}

func newCrowd(t testing.TB, yaml string, store gate.Store, now func() time.Time) *crowd {
	c := &crowd{Store: store}
	c.gate = newGate(t, book(t, yaml), c, gate.Options{Now: now, Deadline: time.Minute})
	return c
}

// rush sends one request of each caller at once and returns those that were admitted.
func (c *crowd) rush(t testing.TB, callers int) []gate.Result {
	var mu sync.Mutex
	var admitted []gate.Result
	var all sync.WaitGroup
	c.pending.Store(int64(callers))
	for range callers {
		all.Go(func() {
			out, err := c.gate.Decide(context.Background(), goods(1),
				gate.Check{Rule: "r", Own: c.own})
			c.pending.Add(-1)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || out.Degraded {
				t.Errorf("%+v, %v", out, err)
			} else if out.Allowed {
				admitted = append(admitted, out)
			}
		})
	}
	all.Wait()
	return admitted
}

// onStores runs a test on a clock in process and in Redis.
func onStores(t *testing.T, run func(t *testing.T, store gate.Store, clock *testclock.Clock)) {
	t.Run("memory", func(t *testing.T) {
		clock := testclock.New()
		run(t, ratelimit.NewMemory(clock.Now), clock)
	})
	t.Run("redis", func(t *testing.T) {
		clock := testclock.New()
		run(t, redislimit.New(steadyClient(t, servers.Redis(t).Addr()), clock.Now), clock)
	})
}

// TestGate_CallersThatShareACallDoNotStarve has more callers on a node than the limiter ever grants
// at once. They get what the limit allows: a denial belongs to one caller's permit and not to the
// permits of all who share the call.
func TestGate_CallersThatShareACallDoNotStarve(t *testing.T) {
	for name, c := range map[string]struct {
		limit          string
		nodes, callers int
		length, step   time.Duration
		most           int // that the limit allows
	}{
		"100/s, burst 10": {
			"algorithm: token_bucket, permitsPerSecond: 100, burst: 10", 1, 64,
			2 * time.Second, 5 * ms, 210,
		},
		"100/s, burst 10, leases 10": {
			"algorithm: token_bucket, permitsPerSecond: 100, burst: 10, leases: 10", 1, 64,
			2 * time.Second, 5 * ms, 210,
		},
		"nginx": {
			"algorithm: nginx, permitsPerSecond: 100, burst: 9, nodelay: true", 1, 64,
			2 * time.Second, 5 * ms, 210,
		},
		"leaky meter": {
			"algorithm: leaky_meter, permitsPerSecond: 100, burst: 10", 1, 64,
			2 * time.Second, 5 * ms, 210,
		},
		"full sooner than a node asks again": {
			"algorithm: token_bucket, permitsPerSecond: 10000, burst: 10", 1, 64,
			100 * ms, 250 * us, 1010,
		},
		"two nodes of a sale": {
			"algorithm: reserve, permitsPerSecond: 100, maxBurstSeconds: 0.05, maxWait: 0s",
			2, 12, 5 * time.Second, 5 * ms, 505,
		},
		"fixed window": {
			"algorithm: fixed_window, limit: 10, interval: 500ms", 1, 64,
			2 * time.Second, 5 * ms, 40,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, store gate.Store, clock *testclock.Clock) {
				nodes := make([]*crowd, c.nodes)
				for i := range nodes {
					nodes[i] = newCrowd(t, "{rules: [{name: r, by: [goods], "+c.limit+"}]}", store,
						clock.Now)
				}
				admitted, calls := 0, int64(0)
				for range c.length / c.step {
					for _, n := range nodes {
						admitted += len(n.rush(t, c.callers))
					}
					clock.Add(c.step)
				}
				for _, n := range nodes {
					calls += n.calls.Load()
				}
				t.Logf("%d of %d admitted by %d calls", admitted, c.most, calls)
				require.LessOrEqual(t, admitted, c.most)
				require.GreaterOrEqual(t, admitted, c.most*97/100)
				require.LessOrEqual(t, calls, int64(c.length/c.step)*int64(c.nodes)*5/4)
			})
		})
	}
}

// TestGate_RetryAfterIsForOneCaller checks that a caller hears when its own permit accumulates. The
// 63 others that share its call do not count.
func TestGate_RetryAfterIsForOneCaller(t *testing.T) {
	onStores(t, func(t *testing.T, store gate.Store, clock *testclock.Clock) {
		c := newCrowd(t, `{rules: [{name: r, by: [goods], algorithm: token_bucket,
			permitsPerSecond: 100, burst: 50}]}`, store, clock.Now)
		require.Len(t, c.rush(t, 64), 50)
		out := decide(t, c.gate, "r", goods(1))
		require.False(t, out.Allowed || out.Never)
		require.Equal(t, 10*ms, out.RetryAfter)
	})
}

// TestGate_RetryAfterOfASharedCallIsTrue has callers of a crowd come back after RetryAfter, and
// before. Every denial names the same moment. At that moment the node grants a permit.
func TestGate_RetryAfterOfASharedCallIsTrue(t *testing.T) {
	for name, rule := range map[string]string{
		"100/s":          "permitsPerSecond: 100, burst: 50",
		"1000/s":         "permitsPerSecond: 1000, burst: 50",
		"700/s":          "permitsPerSecond: 700, burst: 50",
		"1000/s, leases": "permitsPerSecond: 1000, burst: 50, leases: 10",
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, store gate.Store, clock *testclock.Clock) {
				c := newCrowd(t,
					"{rules: [{name: r, by: [goods], algorithm: token_bucket, "+rule+"}]}",
					store, clock.Now)
				require.Len(t, c.rush(t, 64), 50)
				for range 3 {
					c.rush(t, 64) // what has accumulated
					pause := decide(t, c.gate, "r", goods(1)).RetryAfter
					require.Greater(t, pause, ms)
					require.LessOrEqual(t, pause, 10*ms)
					clock.Add(pause - ms)
					out := decide(t, c.gate, "r", goods(1))
					require.False(t, out.Allowed)
					require.Equal(t, ms, out.RetryAfter)
					clock.Add(out.RetryAfter)
					require.True(t, decide(t, c.gate, "r", goods(1)).Allowed)
				}
			})
		})
	}
}
