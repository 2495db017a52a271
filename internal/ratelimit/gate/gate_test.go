package gate_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// promptClient has short deadlines and no retries, as the gate requires.
func promptClient(t testing.TB, addr string) *redis.Client {
	return newClient(t, &redis.Options{
		Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1,
		DialerRetries: 1, DialTimeout: 50 * ms, ReadTimeout: 50 * ms, WriteTimeout: 50 * ms,
	})
}

// steadyClient has long deadlines, for tests of decisions. On a busy machine short deadlines would
// trigger onError instead.
func steadyClient(t testing.TB, addr string) *redis.Client {
	return newClient(t, &redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
}

func newClient(t testing.TB, options *redis.Options) *redis.Client {
	options.DisableIdentity = true
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func paramsOf(t testing.TB, l ratelimit.Limit) ratelimit.Params {
	return must.Get(l.Params())(t)
}

const unhurried = 10 * time.Second

// counters sum events over all rules.
type counters [gate.EventManyKeys + 1]atomic.Int64

func (c *counters) count(_ string, event gate.Event) { c[event].Add(1) }

func (c *counters) of(event gate.Event) int64 { return c[event].Load() }

func book(t require.TestingT, yaml string) *rules.Rulebook {
	return must.Get(rules.New(must.Get(rules.Parse([]byte(yaml)))(t)...))(t)
}

// requestOf returns the rule r and a request of its key "1".
func requestOf(t require.TestingT, b *rules.Rulebook) (*rules.Compiled, ratelimit.Request) {
	rule := must.Get(b.Find("r"))(t)
	var request ratelimit.Request
	rule.Request(&request, "1", b.Params(rule, "1", nil))
	return rule, request
}

func newGate(t testing.TB, b *rules.Rulebook, store gate.Store, opts gate.Options) *gate.Gate {
	g := gate.New(b, store, opts)
	t.Cleanup(g.Close)
	return g
}

// inMemory returns a gate with the rules over an in-memory store.
func inMemory(t testing.TB, yaml string, count func(string, gate.Event)) *gate.Gate {
	return newGate(t, book(t, yaml), ratelimit.NewMemory(nil),
		gate.Options{Count: count, Deadline: unhurried})
}

// goods returns the attributes of a request for a goods.
func goods(id int64) rules.Attributes { return rules.Attributes{Goods: id} }

func decide(t testing.TB, g *gate.Gate, rule string, attrs rules.Attributes) gate.Result {
	t.Helper()
	return must.Get(g.Decide(context.Background(), attrs, gate.Check{Rule: rule}))(t)
}

const hotRule = `
rules:
  - {name: hot, by: [goods], permitsPerSecond: 1000, leases: 10}
  - {name: plain, by: [goods], permitsPerSecond: 1000}
  - {name: slow, by: [goods], algorithm: token_bucket, permitsPerSecond: 0.01, burst: 3}
  - {name: own, by: [user], scope: node, algorithm: token_bucket, permitsPerSecond: 0.01, burst: 2}
  - {name: dry, by: [goods], algorithm: token_bucket, permitsPerSecond: 0.01, burst: 1, dryRun: true}
  - {name: skip, by: [ip], limit: 1, onMissingKey: skip}
  - {name: deny, by: [ip], limit: 1, onMissingKey: deny}
  - {name: shared, by: [ip, route], limit: 1, onMissingKey: shared}
`

const waitRule = `
rules:
  - {name: wait, by: [goods], algorithm: reserve, permitsPerSecond: 0.1, burst: 1, maxWait: 20s}
`

func TestGate_CachesDenials(t *testing.T) {
	meter := &counters{}
	g := newGate(t, book(t, hotRule), redislimit.New(steadyClient(t, servers.Redis(t).Addr()), nil),
		gate.Options{Count: meter.count, Deadline: unhurried})
	for range 3 {
		require.True(t, decide(t, g, "slow", goods(7)).Allowed)
	}
	calls := meter.of(gate.EventRedisCall)
	for range 100 {
		out := decide(t, g, "slow", goods(7))
		require.False(t, out.Allowed)
		require.InDelta(t, 100, out.RetryAfter.Seconds(), 30)
		limit, policy := out.AppendHeaders(nil, []byte(`"x";q=1;w=1`))
		require.Regexp(t, `^"slow";r=0;t=\d+$`, string(limit))
		require.Equal(t, `"x";q=1;w=1, "slow";q=3;w=300`, string(policy))
	}
	require.LessOrEqual(t, meter.of(gate.EventRedisCall)-calls, int64(2),
		"the gate repeats a denial without Redis")
	require.GreaterOrEqual(t, meter.of(gate.EventDenialCache), int64(98))
	require.True(t, decide(t, g, "slow", goods(8)).Allowed, "another goods has a bucket of its own")
}

// TestGate_LeaseGrowsToTheRulesOrAMillisecond counts the calls for 1,000 permits of one moment.
// Each call leases twice as many as the one before, up to the rule's leases or the permits of 1 ms.
func TestGate_LeaseGrowsToTheRulesOrAMillisecond(t *testing.T) {
	for _, c := range []struct {
		rate, nodes int
		calls       int64
	}{
		{1000, 1, 103}, // 1, 2, 4, 8, then 10 each
		{10_000, 1, 103},
		{100_000, 1, 16},    // 1, 2 … 64, then 100 each
		{100_000, 20, 25},   // 1, 2 … 32, then 50 each, a share of the burst
		{100_000, 200, 103}, // the share is less than the rule's leases
	} {
		meter, clock := &counters{}, testclock.New()
		g := newGate(t, book(t, fmt.Sprintf(`{rules: [{name: r, by: [goods],
			algorithm: token_bucket, permitsPerSecond: %d, burst: 1000, leases: 10}]}`, c.rate)),
			ratelimit.NewMemory(clock.Now), gate.Options{
				Count: meter.count, Deadline: unhurried, Now: clock.Now,
				Nodes: func() int { return c.nodes },
			})
		for range 1000 {
			require.True(t, decide(t, g, "r", goods(1)).Allowed)
		}
		require.Equal(t, c.calls, meter.of(gate.EventRedisCall), "%+v", c)
	}
}

// TestResult_ResetIsNotBeforeRetryAfter checks t of the RateLimit field of a denial, for every
// order of the two times: a client that waits until t is not denied again for coming early.
func TestResult_ResetIsNotBeforeRetryAfter(t *testing.T) {
	g := inMemory(t, hotRule, nil)
	out := decide(t, g, "own", rules.Attributes{User: "1"})
	for out.Allowed {
		out = decide(t, g, "own", rules.Attributes{User: "1"})
	}
	for _, c := range []struct {
		reset, retry time.Duration
		want         string
	}{
		{2 * time.Second, 6001 * ms, "7"},
		{9 * time.Second, 7 * time.Second, "9"},
		{0, time.Millisecond, "1"},
		{0, 0, "1"},
	} {
		out.ResetAfter, out.RetryAfter = c.reset, c.retry
		limit, _ := out.AppendHeaders(nil, nil)
		require.Equal(t, `"own";r=0;t=`+c.want, string(limit))
	}
}

// TestGate_NodeScopeMakesNoCalls checks that rules with scope node decide without Redis, even if
// Redis is down.
func TestGate_NodeScopeMakesNoCalls(t *testing.T) {
	meter := &counters{}
	g := newGate(t, book(t, hotRule), redislimit.New(promptClient(t, "127.0.0.1:1"), nil),
		gate.Options{Count: meter.count})
	for i, want := range []bool{true, true, false} {
		require.Equal(t, want, decide(t, g, "own", rules.Attributes{User: "1"}).Allowed, i)
	}
	require.True(t, decide(t, g, "own", rules.Attributes{User: "2"}).Allowed)
	require.Zero(t, meter.of(gate.EventRedisCall))
}

// TestGate_CachedDenialHasTheCallersRetryAfter denies callers that wait for a second, and no time.
func TestGate_CachedDenialHasTheCallersRetryAfter(t *testing.T) {
	clock, meter := testclock.New(), &counters{}
	b := book(t, `{rules: [{name: r, by: [goods], limit: 1, interval: 1s, algorithm: reserve,
		burst: 1, maxWaitMillis: 1000}]}`)
	g := newGate(t, b, ratelimit.NewMemory(clock.Now),
		gate.Options{Now: clock.Now, Count: meter.count, Deadline: unhurried})
	rule, request := requestOf(t, b)
	for range 2 {
		require.True(t, must.Get(g.Take(t.Context(), rule, request))(t).Allowed)
	}
	require.Equal(t, time.Second, must.Get(g.Take(t.Context(), rule, request))(t).RetryAfter)
	request.MaxWait = 0
	require.Equal(t, 2*time.Second, must.Get(g.Take(t.Context(), rule, request))(t).RetryAfter)
	require.EqualValues(t, 1, meter.of(gate.EventDenialCache))
}

func TestGate_DryRunCountsAndAdmits(t *testing.T) {
	meter := &counters{}
	g := inMemory(t, hotRule, meter.count)
	for range 5 {
		out := decide(t, g, "dry", goods(1))
		require.True(t, out.Allowed)
		if out.DryRun { // it took no permit that could come back
			out.Refund()
			g.Close()
		}
	}
	require.EqualValues(t, 4, meter.of(gate.EventDryRun))
	require.EqualValues(t, 5, meter.of(gate.EventAllowed))
}

// TestGate_DelayedDryRunComesBack refunds a request that the rule would have delayed: it took the
// permit for which it did not wait.
func TestGate_DelayedDryRunComesBack(t *testing.T) {
	g := inMemory(t, `{rules: [{name: r, by: [goods], permitsPerSecond: 0.01, burst: 1,
		maxWaitMillis: 1000000, dryRun: true}]}`, nil)
	decide(t, g, "r", goods(1))
	for range 3 {
		delayed := decide(t, g, "r", goods(1))
		require.True(t, delayed.DryRun)
		require.LessOrEqual(t, delayed.ResetAfter, 200*time.Second, "two permits are taken")
		delayed.Refund()
		g.Close()
	}
}

func TestGate_CountsAdmissionsNearTheLimit(t *testing.T) {
	meter := &counters{}
	g := inMemory(t, `
rules:
  - {name: bucket, by: [goods], algorithm: token_bucket, limit: 1, interval: 24h, burst: 10}
  - {name: window, by: [goods], algorithm: fixed_window, limit: 10, interval: 24h}
  - {name: dry, by: [goods], algorithm: fixed_window, limit: 10, interval: 24h, dryRun: true}
  - {name: skip, by: [ip], limit: 1, onMissingKey: skip}
`, meter.count)
	for range 8 {
		for _, rule := range []string{"bucket", "window", "dry", "skip"} {
			decide(t, g, rule, goods(1))
		}
	}
	require.Zero(t, meter.of(gate.EventNearLimit), "a fifth is left")
	for range 4 { // two admissions and two denials each
		decide(t, g, "bucket", goods(1))
		decide(t, g, "window", goods(1))
	}
	require.EqualValues(t, 4, meter.of(gate.EventNearLimit))
	for range 4 { // two admissions, and two that only the dry run admits
		decide(t, g, "dry", goods(1))
	}
	require.EqualValues(t, 6, meter.of(gate.EventNearLimit))
}

// TestGate_MissingKeyFollowsTheRule checks each onMissingKey setting: admit, deny, or one bucket
// for all such requests.
func TestGate_MissingKeyFollowsTheRule(t *testing.T) {
	meter := &counters{}
	g := inMemory(t, hotRule, meter.count)
	for range 3 {
		out := decide(t, g, "skip", rules.Attributes{})
		require.True(t, out.Allowed)
		limit, policy := out.AppendHeaders(nil, nil)
		require.Nil(t, limit)
		require.Nil(t, policy)
	}
	require.EqualValues(t, 3, meter.of(gate.EventAllowed))
	out := decide(t, g, "deny", rules.Attributes{})
	require.Equal(t, []bool{false, true}, []bool{out.Allowed, out.Never})
	require.EqualValues(t, 1, meter.of(gate.EventDenied))
	require.True(t, decide(t, g, "shared", rules.Attributes{Route: "a"}).Allowed)
	require.False(t, decide(t, g, "shared", rules.Attributes{Route: "b"}).Allowed,
		"requests without an address share one bucket")
}

// TestGate_CountsIPv6ByNetwork checks that addresses of one /64 network share a bucket.
func TestGate_CountsIPv6ByNetwork(t *testing.T) {
	g := inMemory(t, hotRule, nil)
	ask := func(ip string) bool {
		return decide(t, g, "deny", rules.Attributes{
			IP: func() netip.Addr { return netip.MustParseAddr(ip) },
		}).Allowed
	}
	require.True(t, ask("2001:db8::1"))
	require.False(t, ask("2001:db8::2"), "the same /64")
	require.True(t, ask("2001:db8:0:1::1"), "another /64")
	require.True(t, ask("192.0.2.1"))
	require.False(t, ask("::ffff:192.0.2.1"), "the same address, mapped to IPv6")
	require.True(t, ask("192.0.2.2"))
}

func TestGate_InvalidRequestsAreErrors(t *testing.T) {
	g := inMemory(t, hotRule, nil)
	_, err := g.Decide(t.Context(), rules.Attributes{}, gate.Check{Rule: "none"})
	require.ErrorIs(t, err, rules.ErrNoRule)
	_, err = g.Decide(t.Context(), goods(5), gate.Check{Rule: "plain", Own: &ratelimit.Limit{}})
	var wrong *ratelimit.FieldError
	require.ErrorAs(t, err, &wrong)
}

func TestGate_DeniesAWaitBeyondTheDeadline(t *testing.T) {
	g := inMemory(t, waitRule, nil)
	decide(t, g, "wait", goods(1))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	out := must.Get(g.Decide(ctx, goods(1), gate.Check{Rule: "wait"}))(t)
	require.False(t, out.Allowed, "the gate denies at once")
	require.True(t, decide(t, g, "wait", goods(1)).Allowed, "the denial took no permit")
}

// TestGate_DrainEndsWaits checks that a node that stops keeps no caller waiting, and that the next
// caller can have the permit.
func TestGate_DrainEndsWaits(t *testing.T) {
	g := newGate(t, book(t, waitRule), ratelimit.NewMemory(nil), gate.Options{Deadline: unhurried})
	decide(t, g, "wait", goods(1))
	ended := make(chan error)
	waiting := decide(t, g, "wait", goods(1))
	require.Positive(t, waiting.Decision.Wait)
	go func() { ended <- waiting.Wait(t.Context()) }()
	g.Drain()
	require.ErrorIs(t, <-ended, gate.ErrDraining)
	g.Close()
	late := decide(t, g, "wait", goods(1))
	require.LessOrEqual(t, late.Decision.Wait, waiting.Decision.Wait, "the permit has returned")
	require.ErrorIs(t, late.Wait(t.Context()), gate.ErrDraining, "a wait that begins later")
	g.Drain() // a second call has no effect
}

// TestGate_LimitsWaiters checks that the gate refuses callers beyond the maximum number of waiters.
func TestGate_LimitsWaiters(t *testing.T) {
	b := book(t, `
rules:
  - {name: wait, by: [goods], algorithm: reserve, permitsPerSecond: 10, burst: 1, maxWait: 60s}`)
	meter := &counters{}
	g := newGate(t, b, ratelimit.NewMemory(nil),
		gate.Options{Waiters: 3, Deadline: unhurried, Count: meter.count})
	var waited, refused atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			out := decide(t, g, "wait", goods(1))
			switch {
			case !out.Allowed || out.Wait(context.Background()) != nil:
				refused.Add(1)
			case out.Decision.Wait > 0:
				waited.Add(1)
			}
		})
	}
	all.Wait()
	require.Positive(t, refused.Load())
	require.Positive(t, waited.Load())
	require.Equal(t, refused.Load(), meter.of(gate.EventDenied))
	require.Equal(t, waited.Load(), meter.of(gate.EventWaited))
}

// TestResult_WaitBeyondTheWaitersReturnsThePermit lets two callers have permits in ten and twenty
// seconds, of whom only one may wait.
func TestResult_WaitBeyondTheWaitersReturnsThePermit(t *testing.T) {
	g := newGate(t, book(t, waitRule), ratelimit.NewMemory(nil),
		gate.Options{Waiters: 1, Deadline: unhurried})
	require.True(t, decide(t, g, "wait", goods(1)).Allowed)
	first, second := decide(t, g, "wait", goods(1)), decide(t, g, "wait", goods(1))
	wait, ended := second.Decision.Wait, make(chan error)
	require.Greater(t, wait, first.Decision.Wait)
	go func() { ended <- first.Wait(t.Context()) }()
	for other := int64(2); ; other++ { // until the first one waits
		decide(t, g, "wait", goods(other))
		if !decide(t, g, "wait", goods(other)).Allowed {
			break
		}
	}
	require.ErrorIs(t, second.Wait(t.Context()), gate.ErrLimited)
	require.Equal(t, ratelimit.Decision{
		RetryAfter: wait, Remaining: second.Remaining, ResetAfter: second.ResetAfter, At: second.At,
	}, second.Decision)
	g.Drain()
	require.ErrorIs(t, <-ended, gate.ErrDraining)
	g.Close()
	require.Less(t, decide(t, g, "wait", goods(1)).Decision.Wait, wait)
}

func TestDecideAll_TakesAllOrNothing(t *testing.T) {
	const both = `
rules:
  - {name: user, by: [user], scope: node, algorithm: token_bucket, permitsPerSecond: 0.01, burst: 5}
  - {name: goods, by: [goods], algorithm: reserve, permitsPerSecond: 0.1, burst: 1, maxWait: 10s}
`
	g := inMemory(t, both, nil)
	attrs := rules.Attributes{User: "1", Goods: 1}
	ask := func() []gate.Result {
		return must.Get(g.DecideAll(t.Context(), attrs, gate.Check{Rule: "user"},
			gate.Check{Rule: "goods"}))(t)
	}
	first := ask()
	require.Len(t, first, 2)
	must.Get(gate.WaitAll(t.Context(), first))(t)

	waiting := ask() // waits ten seconds; the client disconnects
	leaving, leave := context.WithCancel(t.Context())
	leave()
	stopped, err := gate.WaitAll(leaving, waiting)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "goods", stopped.Rule.Name)
	g.Close()

	require.Len(t, ask(), 2, "the gate refunded the goods' permit")
	for range 10 {
		denied := ask()
		require.Len(t, denied, 1)
		require.False(t, denied[0].Allowed)
		require.Equal(t, "goods", denied[0].Rule.Name)
	}
	for range 3 {
		require.True(t, decide(t, g, "user", attrs).Allowed,
			"only two of the user's five permits are taken")
	}
	require.False(t, decide(t, g, "user", attrs).Allowed)
}

// slowStore delays its answers until the test releases them.
type slowStore struct {
	*ratelimit.Memory
	asked, answer chan struct{}
}

func (s *slowStore) TakeEach(
	ctx context.Context, requests ...ratelimit.Request,
) ([]ratelimit.Decision, error) {
	s.asked <- struct{}{}
	<-s.answer
	return s.Memory.TakeEach(ctx, requests...)
}

func TestGate_RefundsPermitsOfCallersThatLeft(t *testing.T) {
	terms := paramsOf(t,
		ratelimit.Limit{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 0.01, Burst: 100})
	b := book(t,
		`{rules: [{name: r, by: [goods], algorithm: token_bucket, permitsPerSecond: 0.01, burst: 100}]}`)
	store := &slowStore{ratelimit.NewMemory(nil), make(chan struct{}), make(chan struct{})}
	meter := &counters{}
	g := newGate(t, b, store, gate.Options{Count: meter.count, Deadline: time.Minute})
	ctx, leave := context.WithCancel(t.Context())
	var passed atomic.Int64
	var all sync.WaitGroup
	ask := func() {
		if out, err := g.Decide(ctx, goods(1), gate.Check{Rule: "r"}); err == nil && out.Allowed {
			passed.Add(1)
		}
	}
	all.Go(ask)
	<-store.asked // Redis has the first request; fifty more callers wait
	for range 50 {
		all.Go(ask)
	}
	require.Eventually(t, func() bool { return g.Waiting("r", "1") == 51 }, time.Minute, ms)
	store.answer <- struct{}{}
	<-store.asked // one Redis request for all waiting callers
	leave()
	all.Wait()
	store.answer <- struct{}{}
	g.Close()
	left := must.Get(store.Memory.TakeEach(t.Context(),
		ratelimit.Request{Key: "{1}:ratelimit:r:1", Params: terms, N: 100, Min: 1}))(t)
	require.EqualValues(t, 100-passed.Load()-1, left[0].Granted,
		"the gate keeps at most one permit and refunds the rest")
	require.Zero(t, meter.of(gate.EventError), "Redis has failed nobody: the callers have left")
}

var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }

func TestRetryAfter_RoundsUp(t *testing.T) {
	require.Equal(t, "1", gate.RetryAfter(0))
	require.Equal(t, "1", gate.RetryAfter(time.Second))
	require.Equal(t, "2", gate.RetryAfter(time.Second+1))
}
