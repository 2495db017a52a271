package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testenv"
	"flashsale.dev/seckill/test/faults/check"
	"flashsale.dev/seckill/test/rig"
)

// harm is one thing that may happen to an installation.
type harm struct {
	name   string
	rig    rig.Options   // two APIs and two consumers if it says nothing else
	over   time.Duration // the buyers come spread over so long; 6 s if 0
	crowd  bool          // the buyers do not wait for those before them: a server that orders must pass is away for long
	limit  int64         // units one buyer may have; 1 if 0
	shards int           // queues of orders; the default if 0
	starts time.Duration // the sale starts so long after it was put up; a minute before if 0
	ends   time.Duration // the sale ends so long after it was put up; an hour if 0
	clock  time.Duration // the clocks of the API hosts are off by so much in the rush
	expect check.Expect
	before func(t *testing.T, s *scene) // what takes time and does no harm, before the rush; may be nil
	// do does the harm, once the rush is on, and returns when whatever it broke works again.
	do func(t *testing.T, s *scene)
	// then goes on in the rush, once the sale is well again; may be nil.
	then func(t *testing.T, s *scene)
	// after looks at what the buyers were told, once everything is calm; may be nil.
	after func(t *testing.T, s *scene, r buyer.Report)
}

// scene is a sale with a rush going on.
type scene struct {
	*rig.Rig
	goods string
	queue int // queues of orders
	start time.Time
	end   time.Time
	units int64
	rng   *rand.Rand
	redis redis.UniversalClient
	won   atomic.Int64  // buyers who were told 202
	over  chan struct{} // closed when the rush has ended

	planted []check.Buyer // of orders that the harm itself has made
}

// until waits for the moment at which such a share of the units has been won, or for the end of the rush.
func (s *scene) until(share float64) {
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case <-tick.C:
			if float64(s.won.Load()) >= share*float64(s.units) {
				return
			}
		case <-s.over:
			return
		}
	}
}

// between is a share of the seed's choice.
func (s *scene) between(from, to float64) float64 { return from + s.rng.Float64()*(to-from) }

// keeper is the Redis that keeps the sale now.
func (s *scene) keeper(t *testing.T) *testenv.RedisServer {
	t.Helper()
	s.Aim(t, s.goods)
	return s.Redis
}

// keeperClient speaks to that one alone.
func (s *scene) keeperClient(t *testing.T) *redis.Client {
	t.Helper()
	s.Aim(t, s.goods)
	return s.RedisNode(t)
}

// lasts lets a harm last.
func (s *scene) lasts(d time.Duration) { time.Sleep(d) }

// run is one run: a sale, a rush, a harm, and the verdict.
func run(t *testing.T, h harm, seed uint64) {
	t.Logf("harm %s, seed %d", h.name, seed)
	o := h.rig
	o.APIs, o.Consumers = max(2, o.APIs), max(2, o.Consumers)
	s := &scene{
		queue: cmp.Or(h.shards, shards),
		units: *unitsFlag, rng: rand.New(rand.NewPCG(seed, 0)), over: make(chan struct{}),
	}
	o.Env = append(slices.Clone(o.Env), fmt.Sprintf("SECKILL_ORDER_SHARDS=%d", s.queue))
	s.Rig = rig.Start(t, suite, o)
	s.redis = s.RedisClient(t)
	limit := max(1, h.limit)
	s.putUp(t, h, limit)
	if h.before != nil {
		h.before(t, s)
	}
	var report buyer.Report
	var err error
	s.AimRabbit(t, s.goods)
	go func() {
		defer close(s.over)
		report, err = buyer.Run(t.Context(), s.plan(t, h))
	}()
	h.do(t, s)
	t.Logf("%d of %d units were promised when the harm was over", s.won.Load(), s.units)
	recovery, waited := s.recovers(t)
	if recovery > slow {
		s.saySlow(t, recovery, waited)
	}
	if h.then != nil {
		h.then(t, s)
	}
	<-s.over
	require.NoError(t, err)
	s.calm(t)
	if h.after != nil {
		h.after(t, s, report)
	}
	history := s.history(t, report)
	history.Final = s.asksAgain(t, history)
	s.everyAPISells(t)
	history.Sale.Limit, history.Sale.StartAt, history.Sale.EndAt = limit, s.start, s.end
	tell(t, h, seed, check.Judge(history, h.expect), recovery, report)
}

// putUp puts up the sale, and then has the API hosts' clocks be as the harm wants them.
func (s *scene) putUp(t *testing.T, h harm, limit int64) {
	t.Helper()
	file := ""
	if h.clock != 0 {
		file = rig.BuildWithClock(t, "api", h.clock) // takes a minute the first time: before the window is chosen
	}
	now := time.Now().Truncate(time.Millisecond)
	s.start, s.end = now.Add(cmp.Or(h.starts, -time.Minute)), now.Add(cmp.Or(h.ends, time.Hour))
	s.goods = s.PutUpFor(t, s.units, limit, s.start, s.end)
	if file == "" {
		return
	}
	for i, p := range s.APIs {
		p.Become(t, file)
		requireClock(t, s.Base(i), h.clock)
	}
}

func (s *scene) plan(t *testing.T, h harm) buyer.Plan {
	t.Helper()
	over := max(6*time.Second, h.over)
	if *harmsFlag == "" {
		over = min(over, 8*time.Second) // a plain go test is in a hurry
	}
	p := buyer.Plan{
		GoodsID: s.goods, Buyers: *buyersFlag, AtOnce: 200, Token: s.BuyerToken, Patience: time.Minute, CallTimeout: 5 * time.Second,
		Stubborn: true, Again: 1, Greedy: 3, Cancels: 4, Over: over, Won: func() { s.won.Add(1) },
	}
	if h.crowd {
		p.AtOnce, p.Glance = p.Buyers, 3*time.Second
	}
	for i := range s.APIs {
		p.Bases = append(p.Bases, s.Base(i))
	}
	return p
}

// calm waits until nothing is on its way anywhere.
func (s *scene) calm(t *testing.T) {
	t.Helper()
	var l apiclient.Ledger
	var f rig.RedisFacts
	quiet := func() bool {
		var err, redisErr error
		l, err = s.ledger(t)
		f, redisErr = s.RedisFacts(t, s.redis, s.goods)
		return err == nil && redisErr == nil && l.Pending == 0 && l.Balanced && f.Pending == 0 && f.Outbox == 0
	}
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
		if quiet() {
			return
		}
	}
	t.Errorf("not calm in %s: ledger %+v, pending %d, outbox %d", patience, l, f.Pending, f.Outbox)
}
