package gate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/property"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// greed is a drawn case: nodes whose callers all ask at once in each round.
type greed struct {
	nodes, callers, leases, leaving int
	limit                           ratelimit.Limit
	changes, deaths                 bool
}

func drawGreed(t *rapid.T) greed {
	return greed{
		nodes:   rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "nodes"),
		callers: rapid.SampledFrom([]int{1, 2, 7, 24, 64, 256}).Draw(t, "callers"),
		leases:  rapid.SampledFrom([]int{0, 10}).Draw(t, "leases"),
		leaving: rapid.SampledFrom([]int{0, 0, 3, 9}).Draw(t, "tenths that leave"),
		limit: ratelimit.Limit{
			Algorithm:        ratelimit.Reserve,
			PermitsPerSecond: rapid.SampledFrom(rates).Draw(t, "rate"),
			MaxBurstSeconds:  rapid.SampledFrom([]float64{0, 0.05, 1, 10}).Draw(t, "burst"),
			MaxWaitMillis:    rapid.SampledFrom([]int64{0, 50, 1000}).Draw(t, "wait"),
		},
		changes: rapid.IntRange(0, 2).Draw(t, "changes") == 0,
		deaths:  rapid.IntRange(0, 2).Draw(t, "deaths") == 0,
	}
}

var rates = []float64{0.1, 1, 7, 100, 333.333, 10_000, 1e6}

// burst is the permits that accumulate while nobody asks, and capacity those with the longest wait.
func burst(l ratelimit.Limit) float64 { return max(1, l.PermitsPerSecond*l.MaxBurstSeconds) }

func capacity(l ratelimit.Limit) float64 {
	return burst(l) + l.PermitsPerSecond*float64(l.MaxWaitMillis)/1000
}

// TestGate_GreedIsBoundedAndServed sends 1 to 256 callers at once to each of 1 to 8 nodes, at 0.1 to
// a million permits a second, on a test clock. Some wait, some leave, the rate may change, and nodes
// may die with their leases. No window has more than the burst, rate × T and the leases, by the
// highest rate and burst so far. Where nobody leaves and nothing changes, callers get 95 % of what
// they ask for or of what the limit has, less the leases.
func TestGate_GreedIsBoundedAndServed(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		c, clock := drawGreed(rt), testclock.New()
		// The number of draws must not depend on who is admitted.
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "chance"), 1))
		store := ratelimit.NewMemory(clock.Now)
		b := must.Get(rules.New(rules.Rule{
			Name: "r", By: []string{"goods"}, Leases: int64(c.leases),
		}))(rt)
		limit := c.limit
		start := func() *crowd {
			made := &crowd{Store: store, own: &limit}
			made.gate = gate.New(b, made, gate.Options{Now: clock.Now, Deadline: time.Minute})
			return made
		}
		crowds := make([]*crowd, c.nodes)
		for i := range crowds {
			crowds[i] = start()
		}
		// Callers ask twice as often as permits accumulate, before a quarter of them do, and before
		// the bucket is full with a part of a permit.
		share := min(float64(c.nodes*c.callers)/2, capacity(limit)/4)
		if room := capacity(limit) - 1; room > 0 {
			share = min(share, room/2)
		}
		step := time.Duration(math.Ceil(share/limit.PermitsPerSecond*1e6)) * us
		rounds := max(4, min(40, 8000/(c.nodes*c.callers)))
		var good []time.Time
		most, rate, deaths := burst(limit), limit.PermitsPerSecond, 0
		for range rounds {
			for i, node := range crowds {
				for _, out := range node.rush(t, c.callers) {
					if chance.IntN(10) < c.leaving {
						out.Refund()
						continue
					}
					good = append(good, clock.Now().Add(out.Decision.Wait))
				}
				node.gate.Close() // waits for the refunds
				if c.deaths && chance.IntN(10) == 0 {
					crowds[i], deaths = start(), deaths+1
				}
			}
			clock.Add(step)
			if c.changes && chance.IntN(5) == 0 {
				limit.PermitsPerSecond = rates[chance.IntN(len(rates))]
				most, rate = max(most, burst(limit)), max(rate, limit.PermitsPerSecond)
			}
		}
		slices.SortFunc(good, time.Time.Compare)
		leased := 0
		if c.leases > 1 {
			leased = (c.nodes + deaths) * c.leases
		}
		const rounded = 2e-6 // seconds: waits are whole microseconds
		require.LessOrEqual(rt, mostInAnyWindow(good, rate), most+float64(leased)+rounded*rate+1e-6)
		if c.leaving == 0 && !c.changes {
			total := capacity(limit) + rate*(time.Duration(rounds-1)*step).Seconds()
			demand := float64(rounds * c.nodes * c.callers)
			require.GreaterOrEqual(rt, float64(len(good)), 0.95*min(total, demand)-float64(leased)-1)
		}
	})
}
