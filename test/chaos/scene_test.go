package chaos

import (
	"cmp"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/rush"
	"flashsale.dev/seckill/test/chaos/check"
	"flashsale.dev/seckill/test/rig"
)

// harm is one thing that may happen to an installation.
type harm struct {
	name   string
	rig    rig.Options   // two APIs and two consumers if it says nothing else
	over   time.Duration // the buyers come spread over so long; 6 s if 0
	limit  int64         // units one buyer may have; 1 if 0
	ends   time.Duration // the sale ends so long after it was put up; an hour if 0
	expect check.Expect
	before func(t *testing.T, s *scene) // what takes time and does no harm, before the rush; may be nil
	// do does the harm, once the rush is on, and returns when whatever it broke works again.
	do func(t *testing.T, s *scene)
}

// scene is a sale with a rush going on.
type scene struct {
	*rig.Rig
	goods string
	units int64
	rng   *rand.Rand
	redis *redis.Client
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

// lasts lets a harm last.
func (s *scene) lasts(d time.Duration) { time.Sleep(d) }

// run is one run: a sale, a rush, a harm, and the verdict.
func run(t *testing.T, h harm, seed uint64) {
	t.Logf("harm %s, seed %d", h.name, seed)
	o := h.rig
	o.APIs, o.Consumers = max(2, o.APIs), max(2, o.Consumers)
	s := &scene{Rig: rig.Start(t, suite, o), units: *unitsFlag, rng: rand.New(rand.NewPCG(seed, 0)), over: make(chan struct{})}
	s.redis = s.RedisClient(t)
	began, limit := time.Now(), max(1, h.limit)
	end := time.Now().Add(cmp.Or(h.ends, time.Hour)).Truncate(time.Millisecond)
	s.goods = s.PutUpUntil(t, s.units, limit, end)
	if h.before != nil {
		h.before(t, s)
	}
	var report rush.Report
	var err error
	go func() {
		defer close(s.over)
		report, err = rush.Run(t.Context(), s.plan(h))
	}()
	h.do(t, s)
	t.Logf("%d of %d units were promised when the harm was over", s.won.Load(), s.units)
	recovery := s.recovers(t)
	<-s.over
	require.NoError(t, err)
	s.calm(t)
	history := s.history(t, report)
	history.Sale.Limit, history.Sale.StartAt, history.Sale.EndAt = limit, began.Add(-2*time.Minute), end
	tell(t, h, seed, check.Judge(history, h.expect), recovery, report)
}

func (s *scene) plan(h harm) rush.Plan {
	over := max(6*time.Second, h.over)
	if *harmsFlag == "" {
		over = min(over, 8*time.Second) // a plain go test is in a hurry
	}
	p := rush.Plan{
		GoodsID: s.goods, Buyers: *buyersFlag, AtOnce: 200, Token: s.BuyerToken, Patience: time.Minute, CallTimeout: 5 * time.Second,
		Stubborn: true, Again: 1, Greedy: 3, Cancels: 4, Over: over, Won: func() { s.won.Add(1) },
	}
	for i := range s.APIs {
		p.Bases = append(p.Bases, s.Base(i))
	}
	return p
}

// patience is how long an installation may take to be well again before the run has failed.
const patience = 90 * time.Second

// recovers waits until the sale's gate is open and what is written is no older than a second, and tells how long that
// took.
func (s *scene) recovers(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	var l rush.Ledger
	var err error
	for time.Since(began) < patience {
		if l, err = s.ledger(t); err == nil {
			f, redisErr := s.RedisFacts(t, s.redis, s.goods)
			if err = redisErr; err == nil && f.Oldest < time.Second {
				return time.Since(began)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the sale is not well again in %s: %+v %v", patience, l, err)
	return 0
}

// ledger asks whichever API is up.
func (s *scene) ledger(t *testing.T) (l rush.Ledger, err error) {
	t.Helper()
	c := s.Merchant(t)
	defer c.HTTP.CloseIdleConnections()
	for i := range s.APIs {
		c.Base = s.Base(i)
		if l, err = c.Ledger(t.Context(), s.goods); err == nil {
			return l, nil
		}
	}
	return l, err
}

// calm waits until nothing is on its way anywhere.
func (s *scene) calm(t *testing.T) {
	t.Helper()
	var l rush.Ledger
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

// emptied counts what is in the queues, and looks again while there is something: the broker's numbers are up to five
// seconds old.
func (s *scene) emptied(t *testing.T) (queued, dead int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 15*time.Second; time.Sleep(200 * time.Millisecond) {
		var err error
		queued, dead, err = s.Queues(t)
		require.NoError(t, err)
		if queued == 0 {
			break
		}
	}
	return queued, dead
}

// history records what everybody says.
func (s *scene) history(t *testing.T, report rush.Report) check.History {
	t.Helper()
	queued, dead := s.emptied(t)
	facts := s.Facts(t, s.goods)
	l, err := s.ledger(t)
	require.NoError(t, err)
	f, err := s.RedisFacts(t, s.redis, s.goods)
	require.NoError(t, err)
	h := check.History{
		Sale: check.Sale{Units: s.units, Stock: facts.Stock, Total: facts.Total}, Held: s.Held(t, s.goods), RedisHeld: f.Held,
		MovesNotGiven: int(facts.NotGiven), Queued: queued, DeadQueued: dead, DeadLetters: s.DeadLetters(t),
		Redis: check.Redis{
			Total: l.Total, Available: l.Available, Pending: l.Pending, Sold: l.Sold, Balanced: l.Balanced,
			PendingEntries: int(f.Pending), OutboxEntries: int(f.Outbox),
		},
	}
	for _, o := range s.OrderRows(t, s.goods) {
		h.Rows = append(h.Rows, check.Row{OrderSn: o.OrderSn, BuyerID: o.BuyerID, Quantity: o.Quantity, Status: o.Status})
	}
	h.Buyers = append(h.Buyers, s.planted...)
	for _, told := range report.Told {
		h.Buyers = append(h.Buyers, buyer(told))
	}
	return h
}

func buyer(t rush.Told) check.Buyer {
	b := check.Buyer{ID: t.BuyerID, Paths: t.Paths, Faults: t.Faults, Unsaid: t.Unsaid}
	for _, heard := range t.Heard {
		b.Heard = append(b.Heard, check.Promise{Path: heard.Path, OrderSn: heard.OrderSn, Asked: heard.Asked, At: heard.At})
	}
	for _, seen := range t.Seen {
		b.Seen = append(b.Seen, seen.Status)
	}
	return b
}
