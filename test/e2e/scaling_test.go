package e2e

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// The limiter of these sales has a burst of one second's permits.
const (
	mostRate = 400.0 // permits a second
	leases   = 10    // of the default rule of /randomPath
	waiting  = time.Second
)

// balancedRush is a rush through a balancer.
type balancedRush struct {
	*installation.Installation
	balancer *balancer
	goods    string
	rate     float64 // permits a second, and the burst
	report   buyers.Report
	err      error
	over     chan struct{}
	calls    int64 // Redis calls before it began
}

// denyingRate returns a rate, in permits a second, at which the limiter denies requests for most of
// a rush: a quarter of the purchases per second that these nodes take, and at most mostRate.
func denyingRate(t *testing.T, r *installation.Installation) float64 {
	const count = 600
	p := buyers.Plan{
		GoodsID: r.PutUp(t, count, 1), Buyers: count, Concurrency: 100,
		Token: r.BuyerToken, RetryErrors: true,
	}
	p.Bases = r.Bases()
	report := must.Get(buyers.Run(t.Context(), p))(t)
	return math.Floor(min(mostRate, count/report.Took.Seconds()/4))
}

// beginRush creates a sale whose limiter has the rate, and starts buyers through a balancer. It
// returns at once.
func beginRush(
	t *testing.T, r *installation.Installation, units int64, rate float64, p buyers.Plan,
) *balancedRush {
	c := &balancedRush{Installation: r, rate: rate, over: make(chan struct{})}
	now := time.Now()
	c.goods = must.Get(r.Merchant(t).PutUp(t.Context(), apiclient.NewSale{
		Title: "a kettle", Price: 1999, Stock: units, StartAt: now.Add(-time.Minute).UTC(),
		EndAt: now.Add(time.Hour).UTC(), PerBuyerLimit: 1,
		Rate: &apiclient.Rate{
			PermitsPerSecond: rate, MaxBurstSeconds: 1, MaxWaitMillis: waiting.Milliseconds(),
		},
	}))(t)
	var nodes []string
	for _, p := range r.APIs {
		nodes = append(nodes, p.Addr)
	}
	direct := apiclient.NewHTTP(p.Concurrency)
	c.balancer = newBalancer(direct.Transport, nodes...)
	p.GoodsID, p.Token, p.Bases, p.RetryErrors, p.CallTimeout = c.goods, r.BuyerToken,
		[]string{"http://balancer"}, true, 5*time.Second
	p.WrapClient = func(*http.Client) *http.Client {
		return &http.Client{Transport: c.balancer, Timeout: p.CallTimeout}
	}
	c.calls = installation.RedisCalls(t, r.RedisClient(t))
	go func() {
		defer close(c.over)
		defer direct.CloseIdleConnections()
		c.report, c.err = buyers.Run(t.Context(), p)
	}()
	return c
}

// requireSoldOut waits for the end of the rush, and checks that every unit was sold once. Each 202
// has its order, and all servers have the same numbers.
func (c *balancedRush) requireSoldOut(t *testing.T, units int64) {
	<-c.over
	require.NoError(t, c.err)
	got := settled(t, c.Installation, c.goods, c.report)
	got.requireSoldOutDespite503(t, units, units, units)
	require.EqualValues(t, 1, got.facts.MostHeld)
}

// requireOnly503 checks that 503 with Retry-After is the only 5xx answer.
func (c *balancedRush) requireOnly503(t *testing.T) {
	seen := c.balancer.seen()
	for status, n := range seen.statuses {
		require.False(t, status >= 500 && status != http.StatusServiceUnavailable,
			"%d answers of %d", n, status)
	}
	require.Zero(t, seen.noRetryAfter, "503 without Retry-After")
}

// requireWithinRate checks the limiter over all nodes that ever ran. It must have denied requests.
// undecided is the number of requests that Redis did not decide in time: each may be one permit too
// many.
func (c *balancedRush) requireWithinRate(t *testing.T, undecided float64) {
	seen, allowance := c.balancer.seen(), c.rate+float64(len(c.APIs)*leases)+undecided
	t.Logf("%d requests in %s at %.0f/s: %d paths, at most %.0f beyond rate × T (allowed %.0f, %.0f undecided), %d answers of 429, answers %v, %d broken",
		seen.requests, c.report.Took.Round(time.Millisecond), c.rate, len(seen.paths),
		seen.beyondRate(c.rate), allowance, undecided, seen.limited, seen.statuses, seen.broken)
	require.LessOrEqual(t, seen.beyondRate(c.rate), allowance,
		"permits beyond rate × T, of %d nodes", len(c.APIs))
	require.Positive(t, seen.limited, "the limiter denied no request")
}

// untilPaths waits until the given number of paths is granted.
func (c *balancedRush) untilPaths(t *testing.T, paths int64) {
	require.Eventually(t, func() bool {
		return int64(len(c.balancer.seen().paths)) >= paths
	}, time.Minute, 5*time.Millisecond)
}

// TestScaling_NodesJoinAndLeaveDuringRush runs 2, 4 and 3 APIs with 1, 3 and 2 consumers during one
// rush. It kills one process of each kind and stops another.
func TestScaling_NodesJoinAndLeaveDuringRush(t *testing.T) {
	r := installation.Start(t, suite, installation.Options{APIs: 2, Consumers: 1, Hosts: true})
	rate := denyingRate(t, r)
	units := int64(11 * rate) // sells for ten seconds; the buyers arrive within eight
	c := beginRush(t, r, units, rate,
		buyers.Plan{Buyers: int(units) * 5 / 4, Concurrency: 1500, Spread: 8 * time.Second})
	c.untilPaths(t, units/10)
	for range 2 {
		c.balancer.add(r.JoinAPI(t).Addr)
		r.JoinConsumer(t)
	}
	c.untilPaths(t, units*4/10)
	undecided := undecidedBy(t, r.APIs[0])
	require.NoError(t, r.Consumers[0].Kill())
	require.NoError(t, r.APIs[0].Kill())
	c.balancer.remove(r.APIs[0].Addr)
	c.untilPaths(t, units*6/10)
	r.Consumers[0].Start(t)
	r.APIs[0].Start(t)
	c.balancer.add(r.APIs[0].Addr)
	undecided += undecidedBy(t, r.APIs[1])
	require.NoError(t, r.Consumers[1].Stop(), r.Consumers[1].Log())
	require.NoError(t, r.APIs[1].Stop(), r.APIs[1].Log())
	c.balancer.remove(r.APIs[1].Addr)

	require.True(t, c.busy(), "the rush ended before the last node was stopped")
	c.requireSoldOut(t, units)
	c.requireOnly503(t)
	for _, i := range []int{0, 2, 3} {
		undecided += undecidedBy(t, r.APIs[i])
		require.Less(t, r.APIs[i].Memory(t, "VmHWM"), 150.0, "MB of API %d", i)
	}
	c.requireWithinRate(t, undecided)
}

// undecidedBy counts the requests of a node that Redis did not decide in time.
func undecidedBy(t *testing.T, p *installation.Program) float64 {
	return p.Metric(t, `seckill_limiter_events_total{event="error",rule="randomPath"}`)
}

// busy reports whether the rush is still running.
func (c *balancedRush) busy() bool {
	select {
	case <-c.over:
		return false
	default:
		return true
	}
}
