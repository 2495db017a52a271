package gate_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// node holds the limiter parts of one API process.
type node struct {
	gate  *gate.Gate
	admin *rules.Admin
	sync  *rules.Sync
}

func startNodeParts(t *testing.T, addr string) node {
	client := steadyClient(t, addr)
	b, store := book(t, liveRule), redislimit.New(client, nil)
	s := rules.NewSync(client, b)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx, func(error) {})
	}()
	t.Cleanup(func() { stop(); <-done })
	g := newGate(t, b, store, gate.Options{Nodes: s.Nodes, Deadline: unhurried})
	return node{g, rules.NewAdmin(b, s, store, nil, nil), s}
}

const liveRule = `{rules: [{name: r, by: [goods], algorithm: token_bucket, permitsPerSecond: 0.01, burst: 2, leases: 10}]}`

// admittedBy sends several requests and counts the admitted ones.
func admittedBy(t testing.TB, g *gate.Gate, id int64) int {
	n := 0
	for range 20 {
		if decide(t, g, "r", goods(id)).Allowed {
			n++
		}
	}
	return n
}

func TestAdmin_ChangeReachesEveryNodeAndRefillsNothing(t *testing.T) {
	addr := servers.Redis(t).Addr()
	a, b := startNodeParts(t, addr), startNodeParts(t, addr)
	require.Equal(t, 2, admittedBy(t, a.gate, 1))
	require.Zero(t, admittedBy(t, b.gate, 1))

	burst := int64(5)
	began := time.Now()
	set := must.Get(a.admin.Set(t.Context(), "r", "1", rules.Change{Burst: &burst}))(t)
	require.Equal(t, "operator", set.Source)
	require.EqualValues(t, 5, set.Burst)
	total := 0
	require.Eventually(t, func() bool { total += admittedBy(t, b.gate, 1); return total > 0 },
		time.Minute, 10*ms)
	t.Logf("the other node knew after %v", time.Since(began).Round(ms))
	if os.Getenv("RATELIMIT_BENCH") != "" {
		require.Less(t, time.Since(began), time.Second)
	}
	total += admittedBy(t, a.gate, 1) + admittedBy(t, b.gate, 1)
	require.Equal(t, 3, total, "the new burst of 5 includes the two permits already taken")
	require.Equal(t, 2, admittedBy(t, a.gate, 2), "another goods keeps the rule's limit")

	require.NoError(t, b.admin.Delete(t.Context(), "r", "1"))
	got := must.Get(a.admin.Get(t.Context(), "r", "1"))(t)
	require.Equal(t, "rule", got.Source)
	require.EqualValues(t, 2, *got.Remaining)
}

// TestAdmin_DeleteResetsTheLimiterOfEachAlgorithm removes a limit of another algorithm, and sets it
// again. The node repeats a denial of the same limit for up to a second, which may end between two
// requests of the same count.
func TestAdmin_DeleteResetsTheLimiterOfEachAlgorithm(t *testing.T) {
	n := startNodeParts(t, servers.Redis(t).Addr())
	window, limit, interval := ratelimit.FixedWindow, int64(3), 86400.0
	admits := func(want int) {
		total := 0
		require.Eventually(t, func() bool {
			total += admittedBy(t, n.gate, 1)
			return total >= want
		}, time.Minute, 10*ms)
		require.Equal(t, want, total+admittedBy(t, n.gate, 1))
	}
	for range 2 {
		admits(2)
		must.Get(n.admin.Set(t.Context(), "r", "1", rules.Change{
			Algorithm: &window, Limit: &limit, IntervalSeconds: &interval,
		}))(t)
		admits(3)
		got := must.Get(n.admin.Get(t.Context(), "r", "1"))(t)
		require.Zero(t, *got.Remaining)
		require.NoError(t, n.admin.Delete(t.Context(), "r", "1"))
	}
}

// TestSync_CountsNodes checks that a node's count rises when another node starts and falls when
// that node stops.
func TestSync_CountsNodes(t *testing.T) {
	addr := servers.Redis(t).Addr()
	a := startNodeParts(t, addr)
	t.Run("a second one", func(t *testing.T) {
		startNodeParts(t, addr)
		require.Eventually(t, func() bool { return a.sync.Nodes() == 2 }, time.Minute, 10*ms)
	})
	require.Eventually(t, func() bool { return a.sync.Nodes() == 1 }, time.Minute, 10*ms)
}

// TestSync_RestoresLimitsInAnEmptyRedis checks that a node writes operators' limits again after
// Redis lost its data.
func TestSync_RestoresLimitsInAnEmptyRedis(t *testing.T) {
	server := servers.Redis(t)
	n := startNodeParts(t, server.Addr())
	must.Get(n.admin.Set(t.Context(), "r", rules.AnyKey, rules.Change{Burst: new(int64(7))}))(t)
	require.NoError(t, server.RestartEmpty(t.Context()))
	fresh := startNodeParts(t, server.Addr())
	require.Eventually(t, func() bool {
		got, err := fresh.admin.Get(context.Background(), "r", "3")
		return err == nil && got.Burst == 7
	}, time.Minute, 20*ms)
	require.Equal(t, 7, admittedBy(t, n.gate, 3))
}

// TestAdmin_LostRedisIsAnError checks that an operator's change fails without Redis. The error does
// not name a field.
func TestAdmin_LostRedisIsAnError(t *testing.T) {
	server := servers.Redis(t)
	n := startNodeParts(t, server.Addr())
	require.NoError(t, server.Kill())
	_, err := n.admin.Set(t.Context(), "r", "1", rules.Change{})
	require.Error(t, err)
	var wrong *ratelimit.FieldError
	require.False(t, errors.As(err, &wrong))
}
