package bench

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

const (
	// refusedEach, boughtEach and ordersEach are the requests of one round.
	refusedEach = 60_000
	boughtEach  = 16_000
	ordersEach  = 8_000
	// refusedBuyers are the buyers of a sold-out sale. Each asks several times.
	refusedBuyers = 4_000
	// atRateFor is the length of a round at a fixed rate.
	atRateFor = 3 * time.Second
)

// BenchmarkAccepted measures decrStock by buyers who have a path, until the last order is in the
// database.
func BenchmarkAccepted(b *testing.B) {
	c := newContest(b)
	for _, n := range []int{64, 256} {
		c.run(fmt.Sprint(n), func(b *testing.B) {
			compare(b, fmt.Sprintf("decrStock accepted, %d connections", n), "purchases",
				contenders(c.sides(), func(s side) measurement { return c.purchase(s, n) })...)
		})
	}
	ours := c.side("ours")
	buy := func() measurement { return c.purchase(ours, 256) }
	profile(b, c.APIs[0], "accepted", buy)
	profile(b, c.Consumers[0], "written", buy)
}

// purchase sells to buyers who have a path.
func (c *contest) purchase(s side, connections int) measurement {
	c.b.Helper()
	goods := s.sale(endless)
	requests := c.purchases(s.addr, goods, boughtEach, inOrder)
	return c.sell(s, goods, load{connections: connections, requests: requests})
}

// BenchmarkWholeWay measures purchases by both calls: for a path and with it, until the last order
// is in the database. The floor program's single call is beside its two calls.
func BenchmarkWholeWay(b *testing.B) {
	c := newContest(b)
	for _, n := range []int{64, 256} {
		c.run(fmt.Sprint(n), func(b *testing.B) {
			single := c.floor
			single.name += ", decrStock alone"
			all := contenders(c.sides(), func(s side) measurement { return c.bothCalls(s, n) })
			compare(b, fmt.Sprintf("both calls, %d connections", n), "purchases", append(all,
				contenders([]side{single}, func(s side) measurement {
					return c.purchase(s, n)
				})...)...)
		})
	}
	ours := c.side("ours")
	profile(b, c.APIs[0], "both-calls", func() measurement { return c.bothCalls(ours, 256) })
}

// bothCalls sells to buyers who ask for a path first.
func (c *contest) bothCalls(s side, connections int) measurement {
	c.b.Helper()
	goods := s.sale(endless)
	requests := c.pathRequests(goods, boughtEach, inOrder)
	return c.sell(s, goods, load{connections: connections, requests: requests})
}

// BenchmarkSoldOut measures the answer that nearly all buyers of a rush get: to a request for a
// path, and to a purchase by those who got a path before. The floor program checks the same tokens
// and writes the same bytes.
func BenchmarkSoldOut(b *testing.B) {
	c := newContest(b)
	for _, call := range []string{"randomPath", "decrStock"} {
		for _, n := range []int{64, 256, 2000} {
			c.run(fmt.Sprintf("%s/%d", call, n), func(b *testing.B) {
				compare(b, fmt.Sprintf("%s sold out, %d connections", call, n), "answers",
					contenders(c.sides(), func(s side) measurement {
						return c.refuse(s, call == "decrStock", n)
					})...)
			})
		}
	}
	ours := c.side("ours")
	profile(b, c.APIs[0], "sold-out", func() measurement { return c.refuse(ours, false, 256) })
	profile(b, c.APIs[0], "sold-out-decrStock",
		func() measurement { return c.refuse(ours, true, 256) })
}

// refuse asks for what is sold out. Paths of an own sale are valid for the whole round.
func (c *contest) refuse(s side, withPath bool, connections int) measurement {
	c.b.Helper()
	goods := s.sale(1)
	requests := c.pathRequests(goods, refusedBuyers, inOrder)
	if withPath {
		requests = c.purchases(s.addr, goods, refusedBuyers, inOrder)
	}
	c.sellOut(s, goods)
	if s.name == c.floor.name { // which is sold out of all other goods
		for i := range requests {
			requests[i] = []byte(strings.Replace(string(requests[i]), "goodsId=", "goodsId=9", 1))
		}
	}
	return s.answers(c.b, load{
		connections: connections, requests: requests, n: refusedEach, want: http.StatusConflict,
	})
}

// sellOut sells the only unit, and waits until the API says so.
func (c *contest) sellOut(s side, goods string) {
	c.b.Helper()
	unit := c.purchases(s.addr, goods, 1, inOrder)
	play(c.b, s.addr, 1, 1, http.StatusAccepted, func(int) []byte { return unit[0] })
	s.written(goods)
	if s.name == c.floor.name {
		return
	}
	late := c.pathRequests(goods, 1, inOrder)[0]
	require.Eventually(c.b, func() bool {
		conflict := false
		crowd(c.b, s.addr, 1, 1, func(client *client, _ int) error {
			status, _, err := client.talk(late)
			conflict = status == http.StatusConflict
			return err
		})
		return conflict
	}, time.Minute, 10*time.Millisecond, "the sale is not sold out")
}

// answers measures a load whose answers are all that it causes.
func (s side) answers(b *testing.B, l load) measurement {
	b.Helper()
	l.addr = s.addr
	before := s.read()
	answered, took := l.play(b)
	return measurement{answered, took, s.since(before)}
}

// BenchmarkPolled measures queries of created orders by their buyers, each of another order. The
// floor program checks the same tokens and writes as many bytes.
func BenchmarkPolled(b *testing.B) {
	c := newContest(b)
	queries := map[string][][]byte{}
	for _, f := range []*fixture{c.fixture, c.older} {
		if f != nil {
			for _, o := range f.bought(f.sale(endless), ordersEach) {
				queries[f.api] = append(queries[f.api], o.query)
			}
		}
	}
	queries[c.floor.addr] = queries[c.api]
	poll := func(s side) measurement {
		return s.answers(b, load{
			connections: 256, requests: queries[s.addr], n: refusedEach, want: http.StatusOK,
		})
	}
	compare(b, "queries of a created order, 256 connections", "answers",
		contenders(c.sides(), poll)...)
	ours := c.side("ours")
	profile(b, c.APIs[0], "polled", func() measurement { return poll(ours) })
}

// BenchmarkClosed measures payments and cancellations of created orders, each by another buyer.
func BenchmarkClosed(b *testing.B) {
	c := newContest(b)
	for _, step := range []struct {
		name    string
		request func(ordered) []byte
	}{
		{"payments", func(o ordered) []byte { return o.pay }},
		{"cancellations", func(o ordered) []byte { return o.cancel }},
	} {
		c.run(step.name, func(b *testing.B) {
			compare(b, step.name+", 256 connections", "answers",
				contenders(c.products(), func(s side) measurement {
					requests := make([][]byte, ordersEach)
					for i, o := range c.of(s).bought(s.sale(endless), ordersEach) {
						requests[i] = step.request(o)
					}
					return s.answers(b, load{
						connections: 256, requests: requests, n: ordersEach, want: http.StatusOK,
					})
				})...)
		})
	}
}

// of is the fixture of a product.
func (c *contest) of(s side) *fixture {
	if s.addr == c.api {
		return c.fixture
	}
	return c.older
}

// BenchmarkStreams measures what 2,000 open event streams of created orders cost while nothing
// happens.
func BenchmarkStreams(b *testing.B) {
	const streams, seconds = 2000, 5
	c := newContest(b)
	for _, s := range c.products() {
		c.run(s.name, func(b *testing.B) {
			api := c.of(s).APIs[0]
			orders := c.of(s).bought(s.sale(endless), streams)
			share := func() float64 {
				before := s.read()
				time.Sleep(seconds * time.Second)
				return s.since(before).all().Seconds() / seconds
			}
			var with, without, each []float64
			for b.Loop() {
				without = append(without, share())
				memory := liveKB(b, api)
				hold(b, s.addr, orders, func() {
					with = append(with, share())
					each = append(each, (liveKB(b, api)-memory)/streams)
				})
			}
			results.note("2,000 idle event streams, "+s.name, "≤ 0.1 of a core more",
				"%.3f of a core in all processes, %.3f without streams; %.0f KB of the API each",
				median(with), median(without), median(each))
		})
	}
}

// liveKB is the memory of a program's objects and stacks, without garbage.
func liveKB(b *testing.B, p *installation.Program) float64 {
	b.Helper()
	resp := must.Get(http.Get("http://" + p.OpsAddr() + "/debug/pprof/heap?gc=1"))(b)
	require.NoError(b, resp.Body.Close())
	return (p.Metric(b, "go_memstats_heap_alloc_bytes") +
		p.Metric(b, "go_memstats_stack_inuse_bytes")) / 1024
}

// hold opens an event stream for each order, and does something while all are open.
func hold(b *testing.B, addr string, orders []ordered, while func()) {
	b.Helper()
	opened := make(chan struct{}, len(orders))
	closed := make(chan struct{})
	go func() {
		defer close(closed) // also where while ends the goroutine, because it has failed
		for range orders {
			<-opened
		}
		while()
	}()
	crowd(b, addr, len(orders), len(orders), func(c *client, i int) error {
		err := c.open(orders[i].events)
		opened <- struct{}{}
		<-closed
		return err
	})
}

// open sends a request whose answer does not end.
func (c *client) open(request []byte) error {
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	status, _, err := c.head()
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("an event stream answers %d", status)
	}
	return err
}

// BenchmarkLatency measures the latency of accepted purchases at fixed rates. The measurement
// begins when the request is due, so that waiting counts.
func BenchmarkLatency(b *testing.B) {
	c := newContest(b)
	for _, rate := range []float64{2000, 4000} {
		c.run(fmt.Sprint(rate), func(b *testing.B) {
			sides := c.sides()
			took := make([][]time.Duration, len(sides))
			for b.Loop() {
				for i, s := range sides {
					took[i] = append(took[i], c.atRate(s, rate))
				}
			}
			var value []string
			for i, s := range sides {
				ratio := medianOf(took[0], took[i], time.Duration.Seconds)
				p99 := slices.Sorted(slices.Values(took[i]))[len(took[i])/2]
				value = append(value, fmt.Sprintf("%s %v (ours / its: %.2f)", s.name,
					p99.Round(10*time.Microsecond), ratio))
			}
			results.note(fmt.Sprintf("decrStock accepted, 99th percentile from due time at %s/s",
				thousands(rate)), "≤ the floor program's", "%s", strings.Join(value, "; "))
		})
	}
}

// atRate buys at a fixed rate and returns the 99th percentile.
func (c *contest) atRate(s side, rate float64) time.Duration {
	c.b.Helper()
	goods := s.sale(endless)
	requests := c.purchases(s.addr, goods, int(rate*atRateFor.Seconds()), inOrder)
	took := make([]time.Duration, len(requests))
	began := time.Now().Add(200 * time.Millisecond) // after the connections are made
	crowd(c.b, s.addr, 4*connections, len(requests), func(client *client, i int) error {
		due := began.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		err := client.ask(requests[i], http.StatusAccepted)
		took[i] = time.Since(due)
		return err
	})
	s.written(goods)
	slices.Sort(took)
	require.NotEmpty(c.b, took)
	return took[len(took)*99/100]
}
