package gate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// moody is a store whose calls sometimes fail.
type moody struct {
	gate.Store
	fails func() bool
}

var errMoody = errors.New("no answer in time")

func (m moody) TakeEach(
	ctx context.Context, requests ...ratelimit.Request,
) ([]ratelimit.Decision, error) {
	if m.fails() {
		return nil, errMoody
	}
	return m.Store.TakeEach(ctx, requests...)
}

// TestGate_DegradedPermitsArePaidBack uses a Redis that fails at intervals, so the nodes decide
// alone in between. Permits from Redis later pay for these admissions. The excess over rate × T
// never exceeds the burst, the leases and the maximum debt of all nodes. In 60 s the nodes decide
// enough requests alone to exceed that bound, if nobody paid for them. Redis answers each node
// within the time in which a bucket fills up, as the promise requires.
func TestGate_DegradedPermitsArePaidBack(t *testing.T) {
	for _, limit := range []degradedLimit{
		{"algorithm: token_bucket", 200},
		{"algorithm: reserve, maxWaitMillis: 1000", 300},
		{"algorithm: smooth_bursty, maxWaitMillis: 0", 200},
		{"algorithm: smooth_bursty, maxWaitMillis: 1000", 300},
	} {
		for _, permits := range []int64{1, 2} {
			for _, nodes := range []int{1, 2, 4} {
				for _, oneIn := range []int{2, 8} {
					t.Run(fmt.Sprintf("%s, %d at once, %d nodes, one call in %d fails", limit.algorithm,
						permits, nodes, oneIn), func(t *testing.T) {
						t.Parallel()
						requirePaidBack(t, limit, permits, nodes, oneIn)
					})
				}
			}
		}
	}
}

// degradedLimit is a limit of 100/s with a burst of 100, and what all nodes may owe.
type degradedLimit struct {
	algorithm string
	owed      int
}

func requirePaidBack(t *testing.T, limit degradedLimit, permits int64, nodes, oneIn int) {
	const rate, burst, leases, seconds = 100.0, 100, 10, 60
	moods, traffic := rand.New(rand.NewPCG(1, uint64(oneIn))), rand.New(
		rand.NewPCG(2, uint64(nodes)))
	clock := testclock.New()
	memory := ratelimit.NewMemory(clock.Now)
	b := book(t, `rules: [{name: r, by: [goods], `+limit.algorithm+`,
		permitsPerSecond: 100, burst: 100, leases: 10, onError: local}]`)
	gates := make([]*gate.Gate, nodes)
	for i := range gates {
		inARow := 0
		store := moody{memory, func() bool {
			// The circuit breaker lets a call through each 100 ms, and a bucket fills up in a
			// second.
			if inARow == 6 || moods.IntN(oneIn) > 0 {
				inARow = 0
				return false
			}
			inARow++
			return true
		}}
		gates[i] = newGate(t, b, store, gate.Options{
			Now: clock.Now, Deadline: time.Minute, Nodes: func() int { return nodes },
		})
	}
	rule, request := requestOf(t, b)
	request.N = permits
	var good []time.Time
	for range 2 * rate * seconds / permits { // of twice the admitted rate
		out := must.Get(gates[traffic.IntN(nodes)].Take(t.Context(), rule, request))(t)
		for range out.Granted {
			good = append(good, clock.Now().Add(out.Decision.Wait))
		}
		clock.Add(time.Duration(permits) * 5 * ms)
	}
	slices.SortFunc(good, time.Time.Compare)
	beyond := mostInAnyWindow(good, rate)
	t.Logf("%d granted, %.0f beyond rate × T", len(good), beyond)
	require.LessOrEqual(t, beyond, float64(burst+nodes*leases+limit.owed))
	require.Greater(t, float64(len(good)), rate*seconds-100,
		"the debt cost more than the degraded permits")
}

// TestGate_DegradedRefundReducesTheDebt checks that a refunded permit does not add to the debt.
func TestGate_DegradedRefundReducesTheDebt(t *testing.T) {
	down, clock := true, testclock.New()
	store := moody{ratelimit.NewMemory(clock.Now), func() bool { return down }}
	g := newGate(t, book(t, `
rules:
  - {name: r, by: [goods], algorithm: token_bucket, permitsPerSecond: 1, burst: 5, onError: local}
`), store, gate.Options{Now: clock.Now})
	for i := range 3 {
		out := decide(t, g, "r", goods(1))
		require.True(t, out.Allowed && out.Degraded)
		if i > 0 {
			out.Refund()
		}
	}
	down = false
	clock.Add(200 * ms) // the breaker calls Redis again; no permit has refilled
	for range 4 {
		out := decide(t, g, "r", goods(1))
		require.True(t, out.Allowed && !out.Degraded)
	}
	require.False(t, decide(t, g, "r", goods(1)).Allowed,
		"a degraded admission used one of five permits")
}

// TestGate_ChangedLimitKeepsTheDebt changes the limit of a key that owes its burst.
func TestGate_ChangedLimitKeepsTheDebt(t *testing.T) {
	down, clock := true, testclock.New()
	store := moody{ratelimit.NewMemory(clock.Now), func() bool { return down }}
	g := newGate(t, book(t, `
rules:
  - {name: r, by: [goods], algorithm: token_bucket, permitsPerSecond: 1, burst: 5, onError: local}
`), store, gate.Options{Now: clock.Now, Deadline: unhurried})
	admitted := func(own *ratelimit.Limit) (n int) {
		for range 10 {
			check := gate.Check{Rule: "r", Own: own}
			if must.Get(g.Decide(t.Context(), goods(1), check))(t).Allowed {
				n++
			}
		}
		return n
	}
	require.Equal(t, 5, admitted(nil))
	down = false
	clock.Add(200 * ms) // the breaker calls Redis again; no permit has refilled
	require.Equal(t, 1, admitted(&ratelimit.Limit{
		Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1, Burst: 6,
	}), "five of six permits are owed")
}

// TestGate_DebtCountsWhileItIsPaid has a node that owes its part, in a Redis whose permits another
// node takes. While a call that pays hangs, the node may owe nothing more.
func TestGate_DebtCountsWhileItIsPaid(t *testing.T) {
	clock := testclock.New()
	memory := ratelimit.NewMemory(clock.Now)
	var down, hangs atomic.Bool
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	b := book(t,
		`{rules: [{name: r, by: [goods], algorithm: token_bucket, permitsPerSecond: 1, burst: 2}]}`)
	g := newGate(t, b, moody{memory, func() bool {
		if hangs.Load() {
			asked <- struct{}{}
			<-answer
		}
		return down.Load()
	}}, gate.Options{Now: clock.Now, Deadline: time.Second})
	rule, request := requestOf(t, b)
	request.N = 2 // a call of its own, before which another one pays the debt
	take := func() bool { return must.Get(g.Take(t.Context(), rule, request))(t).Allowed }
	for range 2 {
		must.Get(memory.TakeEach(t.Context(), request))(t)
		require.False(t, take())
		down.Store(true)
		require.True(t, take())
		down.Store(false)
		clock.Add(2 * time.Second)
	}
	must.Get(memory.TakeEach(t.Context(), request))(t)
	hangs.Store(true)
	var paying sync.WaitGroup
	paying.Go(func() { assert.False(t, take(), "the node owes two bursts") })
	<-asked
	assert.False(t, take(), "the node owes two bursts")
	hangs.Store(false)
	close(answer)
	paying.Wait()
}

// TestGate_MoreThanTheNodesShareIsNotNever asks one of four nodes for more permits than its share
// of the limit, while Redis does not answer and afterwards.
func TestGate_MoreThanTheNodesShareIsNotNever(t *testing.T) {
	for _, algorithm := range []string{
		"token_bucket, burst: 8", "smooth_bursty", "fixed_window", "sliding_window", "sliding_log",
	} {
		t.Run(algorithm, func(t *testing.T) {
			down, clock := true, testclock.New()
			store := moody{ratelimit.NewMemory(clock.Now), func() bool { return down }}
			b := book(t, `{rules: [{name: r, by: [goods], permitsPerSecond: 8, algorithm: `+
				algorithm+`}]}`)
			g := newGate(t, b, store, gate.Options{
				Now: clock.Now, Deadline: time.Minute, Nodes: func() int { return 4 },
			})
			take := func(n int64) gate.Result {
				rule, request := requestOf(t, b)
				request.N = n
				return must.Get(g.Take(t.Context(), rule, request))(t)
			}
			if algorithm != "smooth_bursty" { // which admits any request
				out := take(8)
				require.False(t, out.Allowed || out.Never)
				require.Positive(t, out.RetryAfter)
				require.True(t, take(9).Never)
			}
			down = false
			clock.Add(time.Second)
			require.True(t, take(8).Allowed)
		})
	}
}
