package gate_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
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

// greed is a drawn case: nodes whose callers all ask at once in each round.
type greed struct {
	nodes, callers, leases, leaving   int
	limit                             ratelimit.Limit
	changes, deaths, drained, inRedis bool
}

func drawGreed(t *rapid.T) greed {
	c := greed{
		nodes: rapid.OneOf(rapid.IntRange(1, 8), rapid.Just(8)).Draw(t, "nodes"),
		callers: rapid.OneOf(rapid.IntRange(1, 256), rapid.SampledFrom([]int{1, 2, 7, 64, 256})).
			Draw(t, "callers"),
		leases:  rapid.SampledFrom([]int{0, 10}).Draw(t, "leases"),
		leaving: rapid.SampledFrom([]int{0, 0, 3, 9}).Draw(t, "tenths that leave"),
		limit: ratelimit.Limit{
			Algorithm:        ratelimit.Reserve,
			PermitsPerSecond: drawRate(t),
			MaxWaitMillis:    rapid.SampledFrom([]int64{0, 50, 1000}).Draw(t, "wait"),
		},
		changes: rapid.IntRange(0, 2).Draw(t, "changes") == 0,
		deaths:  rapid.IntRange(0, 2).Draw(t, "deaths") == 0,
		drained: rapid.Bool().Draw(t, "drained"),
		inRedis: rapid.IntRange(0, 3).Draw(t, "in Redis") == 0,
	}
	if rapid.IntRange(0, 3).Draw(t, "burst in permits") == 0 {
		c.limit.Burst = rapid.SampledFrom([]int64{1, 5, 10, 100}).Draw(t, "burst")
	} else {
		c.limit.MaxBurstSeconds = rapid.OneOf(rapid.Float64Range(0, 10),
			rapid.SampledFrom([]float64{0, 0.05, 1, 10})).Draw(t, "burst seconds")
	}
	return c
}

var rates = []float64{0.1, 1, 7, 100, 333.333, 10_000, 1e6}

func drawRate(t *rapid.T) float64 {
	if rapid.Bool().Draw(t, "usual rate") {
		return rapid.SampledFrom(rates).Draw(t, "rate")
	}
	return math.Pow(10, rapid.Float64Range(-1, 6).Draw(t, "logarithm of the rate"))
}

// burst is the permits that accumulate while nobody asks, and capacity those with the longest wait.
func burst(l ratelimit.Limit) float64 {
	if l.Burst > 0 {
		return float64(l.Burst)
	}
	return max(1, l.PermitsPerSecond*l.MaxBurstSeconds)
}

func capacity(l ratelimit.Limit) float64 {
	return burst(l) + l.PermitsPerSecond*longestWait(l).Seconds()
}

func longestWait(l ratelimit.Limit) time.Duration { return time.Duration(l.MaxWaitMillis) * ms }

// greedyStep is a pause after which n callers ask for twice the permits that have accumulated. It
// ends before a quarter of the permits do so, and before the bucket is full with a part of a
// permit.
func greedyStep(l ratelimit.Limit, n int) time.Duration {
	share := min(float64(n)/2, capacity(l)/4)
	if room := capacity(l) - 1; room > 0 {
		share = min(share, room/2)
	}
	return time.Duration(math.Ceil(share/l.PermitsPerSecond*1e6)) * us
}

// servedShare is the share of a rate that callers get who ask once in each step. A bucket that has
// no room for what accumulates in a step grants a permit at the first step after it is complete.
func servedShare(l ratelimit.Limit, step time.Duration) float64 {
	interval := 1 / l.PermitsPerSecond
	if (capacity(l)-1)*interval >= step.Seconds() {
		return 1
	}
	return interval / (math.Ceil(interval/step.Seconds()) * step.Seconds())
}

// grant is n permits that are good at a time.
type grant struct {
	at time.Time
	n  float64
}

// rateSince is a rate from a time on.
type rateSince struct {
	from time.Time
	rate float64
}

// highest returns for each moment the highest rate of the longest wait before it. Permits that are
// good then were taken within this time.
func highest(rates []rateSince, longest time.Duration) (all []rateSince) {
	var moments []time.Time
	for _, r := range rates {
		moments = append(moments, r.from, r.from.Add(longest))
	}
	slices.SortFunc(moments, time.Time.Compare)
	for _, at := range moments {
		most := 0.0
		for i, r := range rates {
			ended := i+1 < len(rates) && !at.Before(rates[i+1].from.Add(longest))
			if !r.from.After(at) && !ended {
				most = max(most, r.rate)
			}
		}
		all = append(all, rateSince{at, most})
	}
	return all
}

// accumulated is the permits that accumulate at the rates until a time.
func accumulated(rates []rateSince, until time.Time) (permits float64) {
	for i, r := range rates {
		end := until
		if i+1 < len(rates) && rates[i+1].from.Before(end) {
			end = rates[i+1].from
		}
		permits += r.rate * max(0, end.Sub(r.from).Seconds())
	}
	return permits
}

// beyondRate is the largest excess of permits over the accumulated ones in any window.
func beyondRate(good []grant, rates []rateSince) float64 {
	slices.SortStableFunc(good, func(a, b grant) int { return a.at.Compare(b.at) })
	lowest, most, got := math.Inf(1), 0.0, 0.0
	for _, g := range good {
		paid := accumulated(rates, g.at)
		lowest = min(lowest, got-paid)
		got += g.n
		most = max(most, got-paid-lowest)
	}
	return most
}

// mob is the nodes of a case, on one store and one clock.
type mob struct {
	greed
	t      *testing.T
	clock  *testclock.Clock
	store  gate.Store
	book   *rules.Rulebook
	chance *rand.Rand
	crowds []*crowd

	good      []grant
	rates     []rateSince
	mostBurst float64
	died      int     // nodes
	asked     float64 // permits
	kept      float64 // by callers that did not leave
}

// lease is how many permits a node holds at most: the rule's leases, or the permits of 1 ms at the
// highest rate.
func (m *mob) lease() float64 {
	most := float64(m.leases)
	if m.leases > 1 {
		for _, r := range m.rates {
			most = max(most, r.rate/1000)
		}
	}
	return most
}

func (m *mob) start() *crowd {
	c := &crowd{Store: m.store, own: &m.limit}
	c.gate = gate.New(m.book, c, gate.Options{Now: m.clock.Now, Deadline: time.Minute})
	return c
}

func (m *mob) setRate(rate float64) {
	m.limit.PermitsPerSecond = rate
	m.rates = append(m.rates, rateSince{m.clock.Now(), rate})
	m.mostBurst = max(m.mostBurst, burst(m.limit))
}

// drain takes what the limiter grants without a wait.
func (m *mob) drain() {
	params := paramsOf(m.t, m.limit)
	rule := must.Get(m.book.Find("r"))(m.t)
	var request ratelimit.Request
	rule.Request(&request, "1", &params)
	request.N, request.MaxWait = params.LargestRequest(0), 0
	d := must.Get(m.store.TakeEach(context.Background(), request))(m.t)[0]
	require.True(m.t, d.Allowed)
	m.keep(grant{m.clock.Now(), float64(d.Granted)})
	m.asked += float64(d.Granted)
}

func (m *mob) keep(g grant) {
	m.good = append(m.good, g)
	m.kept += g.n
}

// rush has all callers of all nodes ask. Some leave, and some nodes die with their leases.
func (m *mob) rush(leaving int) {
	for i, node := range m.crowds {
		for _, out := range node.rush(m.t, m.callers) {
			if m.chance.IntN(10) < leaving {
				out.Refund()
				continue
			}
			m.keep(grant{m.clock.Now().Add(out.Decision.Wait), 1})
		}
		m.asked += float64(m.callers)
		node.gate.Close() // waits for the refunds
		if m.deaths && m.chance.IntN(10) == 0 {
			m.crowds[i] = m.start()
			m.died++
		}
	}
}

// play rushes. The rate may change after each round.
func (m *mob) play(rounds int) {
	step := greedyStep(m.limit, m.nodes*m.callers)
	for range rounds {
		m.rush(m.leaving)
		m.clock.Add(step)
		if m.changes && m.chance.IntN(5) == 0 {
			m.setRate(rates[m.chance.IntN(len(rates))])
		}
	}
}

// serve rushes without a change while nobody leaves. It returns the permits that the callers get
// after the first round, and those that they could get: what accumulates meanwhile, or what they
// ask for.
func (m *mob) serve(rounds int) (got, due float64) {
	step := greedyStep(m.limit, m.nodes*m.callers)
	m.rush(0)
	kept, demand := m.kept, float64(rounds*m.nodes*m.callers)
	for range rounds {
		m.clock.Add(step)
		m.rush(0)
	}
	accumulates := m.limit.PermitsPerSecond * (time.Duration(rounds) * step).Seconds()
	return m.kept - kept, min(demand, accumulates*servedShare(m.limit, step))
}

// TestGate_SlowRateForgetsNoPermits changes the rate of a drained limiter to one at which the
// permits taken are more than 2^51 ticks, and back. Leases admit no more than what has accumulated
// either.
func TestGate_SlowRateForgetsNoPermits(t *testing.T) {
	const callers, leases = 60, 10
	client := steadyClient(t, servers.Redis(t).Addr())
	clock := testclock.New()
	for name, store := range map[string]gate.Store{
		"memory": ratelimit.NewMemory(clock.Now), "redis": redislimit.New(client, clock.Now),
	} {
		m := &mob{
			greed: greed{callers: callers, leases: leases, limit: ratelimit.Limit{
				Algorithm: ratelimit.Reserve, MaxBurstSeconds: 10,
			}},
			t: t, clock: clock, store: store,
			book: must.Get(rules.New(rules.Rule{
				Name: "r", By: []string{"goods"}, Leases: leases,
			}))(t),
			chance: rand.New(rand.NewPCG(1, 1)),
		}
		m.crowds = append(m.crowds, m.start())
		m.setRate(1e6)
		m.drain()
		m.setRate(333.333)
		m.rush(0) // the next request changes the limiter
		clock.Add(2 * time.Second)
		m.rush(0)
		m.setRate(1e6)
		for range 40 {
			m.rush(0)
		}
		require.LessOrEqual(t, beyondRate(m.good, m.rates), m.mostBurst+m.lease(), name)
	}
}

// TestGate_GreedIsBoundedAndServed sends 1 to 256 callers at once to each of 1 to 8 nodes, on a
// test clock, in process and in Redis. The limits are 0.1 to a million permits a second with up to
// 10 s of burst. Some wait, some leave, the rate may change, and nodes may die with their leases.
// No window has more than the largest burst, what accumulates at the rates of the time, and the
// nodes' leases. In the end nobody leaves and nothing changes. Then callers get 95 % of what they
// ask for or of what accumulates, less the leases.
func TestGate_GreedIsBoundedAndServed(t *testing.T) {
	client := steadyClient(t, servers.Redis(t).Addr())
	b := must.Get(rules.New(rules.Rule{Name: "r", By: []string{"goods"}}))(t)
	leasing := must.Get(rules.New(rules.Rule{Name: "r", By: []string{"goods"}, Leases: 10}))(t)
	property.Check(t, func(rt *rapid.T) {
		clock := testclock.New()
		m := &mob{
			greed: drawGreed(rt), t: t, clock: clock,
			store: ratelimit.NewMemory(clock.Now), book: b,
			// The number of draws must not depend on who is admitted.
			chance: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "chance"), 1)),
		}
		if m.leases > 0 {
			m.book = leasing
		}
		if m.inRedis {
			require.NoError(rt, client.FlushDB(context.Background()).Err())
			m.store = redislimit.New(client, clock.Now)
		}
		for range m.nodes {
			m.crowds = append(m.crowds, m.start())
		}
		m.setRate(m.limit.PermitsPerSecond)
		if m.drained {
			m.drain()
		}
		rounds := max(4, min(40, 3000/(m.nodes*m.callers)))
		m.play(rounds)
		died := m.died
		got, due := m.serve(rounds)

		leased := float64(m.nodes) * m.lease()
		rates := highest(m.rates, longestWait(m.limit))
		// Waits are whole microseconds, and rates are exact to a billionth.
		rounded := 1e-9*accumulated(rates, clock.Now().Add(time.Second)) + 1e-6
		for _, r := range rates {
			rounded = max(rounded, 2e-6*r.rate)
		}
		require.LessOrEqual(rt, beyondRate(m.good, rates), m.mostBurst+leased+rounded)
		lost := leased + float64(m.died-died)*m.lease()
		require.GreaterOrEqual(rt, got, 0.95*due-lost-1)
		if m.leaving == 0 && !m.changes {
			share := servedShare(m.limit, greedyStep(m.limit, m.nodes*m.callers))
			due = min(m.asked, capacity(m.limit)+share*accumulated(m.rates, clock.Now()))
			lost = leased + float64(m.died)*m.lease()
			require.GreaterOrEqual(rt, m.kept, 0.95*due-lost-1, "from the first request on")
		}
	})
}
