package bench

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// refusedEach and boughtEach are the requests of one round.
	refusedEach = 10_000
	boughtEach  = 4_000
	// atRateFor is the length of a round at a fixed rate.
	atRateFor = 2 * time.Second
)

// BenchmarkSoldOut measures the answer that nearly all buyers of a rush get. It compares cmd/api
// over loopback with bare gin that checks the same tokens and writes the same bytes. The processor
// time is that of the answering process.
func BenchmarkSoldOut(b *testing.B) {
	f := newFixture(b)
	goods := f.soldOut()
	floor := f.startFloor(goods)
	requests, _ := f.pathRequests(goods, connections)
	asked, before := 0, f.redisCalls()
	refuse := func(addr string, pid int) func() measurement {
		cpu := cpuOf(pid)
		return func() measurement {
			asked += refusedEach
			spent := cpu()
			took := play(b, addr, connections, refusedEach, http.StatusConflict,
				func(i int) []byte { return requests[i%len(requests)] })
			return measurement{refusedEach, took, cpu() - spent}
		}
	}
	ours := refuse(f.api, f.APIs[0].Pid())
	compare(b, "sold out, over HTTP", "answers", contender{"ours", ours},
		contender{"bare gin, same token check and bytes", refuse(floor.addr, floor.pid)})
	b.ReportMetric(float64(f.redisCalls()-before)/float64(asked/2), "redis-calls/answer")
	profile(b, f.APIs[0], "sold-out", ours)
}

// BenchmarkAccepted measures decrStock by buyers who have a path, while the consumer and the
// database work beside. All purchases of a round are answered 202 with a confirmed message. The
// floor program does the same without any check. The processor time is that of the answering
// process.
func BenchmarkAccepted(b *testing.B) {
	f := newFixture(b)
	floor := f.startFloor(f.soldOut())
	buy := func(goods, addr string, pid int) func() measurement {
		cpu := cpuOf(pid)
		return func() measurement {
			requests := f.purchases(goods, boughtEach, inOrder)
			spent := cpu()
			took := play(b, addr, connections, len(requests), http.StatusAccepted,
				func(i int) []byte { return requests[i] })
			used := cpu() - spent
			f.written(goods)
			return measurement{len(requests), took, used}
		}
	}
	ours := buy(f.sale(endless), f.api, f.APIs[0].Pid())
	compare(b, "accepted purchases (202), over HTTP", "purchases", contender{"ours", ours},
		contender{
			"bare gin, five bare commands, one message per group",
			buy(floor.goods, floor.addr, floor.pid),
		})
	profile(b, f.APIs[0], "accepted", ours)
}

// BenchmarkPolled measures queries of created orders by their buyers, in turn. The floor program
// checks the same tokens and writes a shorter answer.
func BenchmarkPolled(b *testing.B) {
	f := newFixture(b)
	floor, goods := f.startFloor(f.soldOut()), f.sale(endless)
	queries, _ := f.bought(goods, boughtEach)
	poll := func(addr string, pid int) func() measurement {
		cpu := cpuOf(pid)
		return func() measurement {
			spent := cpu()
			took := play(b, addr, connections, refusedEach, http.StatusOK,
				func(i int) []byte { return queries[i%len(queries)] })
			return measurement{refusedEach, took, cpu() - spent}
		}
	}
	ours := poll(f.api, f.APIs[0].Pid())
	compare(b, "queries of a created order, over HTTP", "answers", contender{"ours", ours},
		contender{"bare gin, same token check", poll(floor.addr, floor.pid)})
	profile(b, f.APIs[0], "polled", ours)
}

// BenchmarkPaid measures payments of created orders, each of another buyer.
func BenchmarkPaid(b *testing.B) {
	f := newFixture(b)
	goods := f.sale(endless)
	cpu := cpuOf(f.APIs[0].Pid(), f.SQL.Pid())
	var rounds []measurement
	for b.Loop() {
		_, pays := f.bought(goods, boughtEach)
		spent := cpu()
		took := play(b, f.api, connections, len(pays), http.StatusOK,
			func(i int) []byte { return pays[i] })
		rounds = append(rounds, measurement{len(pays), took, cpu() - spent})
	}
	results.note("payments, over HTTP", "≥ 5,000/s", "%s/s; processor time of API and database %v",
		thousands(medianRate(rounds)), cpuEach(rounds))
}

// BenchmarkLatency measures the latency of an accepted purchase at half the highest rate. The
// measurement begins when the request is due, so that waiting counts.
func BenchmarkLatency(b *testing.B) {
	f := newFixture(b)
	floor, goods := f.startFloor(f.soldOut()), f.sale(endless)
	warm := f.purchases(goods, boughtEach, inOrder)
	took := play(b, f.api, connections, len(warm), http.StatusAccepted,
		func(i int) []byte { return warm[i] })
	rate := float64(len(warm)) / took.Seconds() / 2
	var ours, floors []time.Duration
	for b.Loop() {
		ours = append(ours, f.atRate(goods, f.api, rate))
		floors = append(floors, f.atRate(floor.goods, floor.addr, rate))
	}
	ratio := medianOf(ours, floors, func(d time.Duration) float64 { return float64(d) })
	slices.Sort(ours)
	slices.Sort(floors)
	b.ReportMetric(ratio, "of-floor")
	results.note("accepted purchases, 99th percentile at half the highest rate",
		"≤ 2 × the floor program's", "%v at %s/s; floor program %v; %.2f ×",
		ours[len(ours)/2].Round(10*time.Microsecond), thousands(rate),
		floors[len(floors)/2].Round(10*time.Microsecond), ratio)
}

// atRate buys at a fixed rate and returns the 99th percentile.
func (f *fixture) atRate(goods, addr string, rate float64) time.Duration {
	f.b.Helper()
	requests := f.purchases(goods, int(rate*atRateFor.Seconds()), inOrder)
	took := make([]time.Duration, len(requests))
	began := time.Now().Add(200 * time.Millisecond) // after the connections are made
	crowd(f.b, addr, 4*connections, len(requests), func(c *client, i int) error {
		due := began.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		err := c.ask(requests[i], http.StatusAccepted)
		took[i] = time.Since(due)
		return err
	})
	f.written(goods)
	slices.Sort(took)
	require.NotEmpty(f.b, took)
	return took[len(took)*99/100]
}
