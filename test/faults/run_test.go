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

	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/test/faults/check"
)

// run is an installation with one sale for which buyers arrive.
type run struct {
	*installation.Installation
	goods    string
	shards   int // number of order queues
	start    time.Time
	end      time.Time
	units    int64
	rng      *rand.Rand
	redis    redis.UniversalClient
	promised atomic.Int64  // answers with 202
	ended    chan struct{} // closed after the last buyer
	late     bool          // the last buyer left before untilPromised had its share

	extraBuyers []buyers.Result // buyers of orders that the fault itself created
}

// untilPromised waits until a share of the units (0 to 1) is promised, or the last buyer has left.
func (r *run) untilPromised(share float64) {
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case <-tick.C:
			if float64(r.promised.Load()) >= share*float64(r.units) {
				return
			}
		case <-r.ended:
			r.late = r.late || float64(r.promised.Load()) < share*float64(r.units)
			return
		}
	}
}

// random draws from the seed a number in [from, to).
func (r *run) random(from, to float64) float64 { return from + r.rng.Float64()*(to-from) }

// randomSeconds draws from the seed a duration in [from, to) seconds.
func (r *run) randomSeconds(from, to float64) time.Duration {
	return time.Duration(r.random(from, to) * float64(time.Second))
}

// master returns the Redis server that holds the sale now.
func (r *run) master(t *testing.T) *servers.RedisServer {
	r.SelectRedis(t, r.goods)
	return r.Redis
}

// masterClient is a client of that server alone.
func (r *run) masterClient(t *testing.T) *redis.Client {
	r.SelectRedis(t, r.goods)
	return r.RedisNode(t)
}

// execute starts an installation and a sale, injects the fault while buyers arrive, and reports
// the verdict.
func execute(t *testing.T, f fault, seed uint64) {
	t.Logf("fault %s, seed %d", f.name, seed)
	o := f.options
	o.APIs, o.Consumers = max(2, o.APIs), max(2, o.Consumers)
	r := &run{
		shards: cmp.Or(f.shards, defaultShards), units: *unitsFlag,
		rng: rand.New(rand.NewPCG(seed, 0)), ended: make(chan struct{}),
	}
	o.Env = append(slices.Clone(o.Env), fmt.Sprintf("SECKILL_ORDER_SHARDS=%d", r.shards))
	r.Installation = installation.Start(t, suite, o)
	r.redis = r.RedisClient(t)
	r.createSale(t, f)
	if f.prepare != nil {
		f.prepare(t, r)
	}
	var report buyers.Report
	var err error
	r.SelectRabbit(t, r.goods)
	go func() {
		defer close(r.ended)
		report, err = buyers.Run(t.Context(), r.plan(f))
	}()
	f.inject(t, r)
	t.Logf("%d of %d units were promised when the fault ended", r.promised.Load(), r.units)
	// A sale that ends early may end before the share is promised.
	require.False(t, r.late && f.ends == 0, "the last buyer left before the fault was over")
	recovery := r.awaitRecovery(t)
	if f.afterRecovery != nil {
		f.afterRecovery(t, r)
	}
	<-r.ended
	require.NoError(t, err)
	r.awaitDrained(t)
	if f.checkReport != nil {
		f.checkReport(t, r, report)
	}
	history := r.history(t, report)
	history.Final = r.finalStatuses(t, history)
	r.requireEveryAPISells(t)
	reportVerdict(t, f, seed, check.Judge(history, f.allow), recovery, report)
}

// createSale creates the sale. Then it replaces the APIs by programs whose clocks are off by the
// fault's clockOffset, if that is not 0.
func (r *run) createSale(t *testing.T, f fault) {
	file := ""
	if f.clockOffset != 0 {
		// The first build takes a minute, so it comes before the sale's window is chosen.
		file = installation.BuildWithClock(t, "api", f.clockOffset)
	}
	now := time.Now().Truncate(time.Millisecond)
	r.start = now.Add(cmp.Or(f.starts, -time.Minute))
	r.end = now.Add(cmp.Or(f.ends, time.Hour))
	r.goods = r.PutUpFor(t, r.units, 1, r.start, r.end)
	if file == "" {
		return
	}
	for i, p := range r.APIs {
		p.RestartAs(t, file)
		requireClock(t, r.Base(i), f.clockOffset)
	}
}

func (r *run) plan(f fault) buyers.Plan {
	spread := max(6*time.Second, f.spread)
	if *namesFlag == "" {
		spread = min(spread, 8*time.Second) // keeps a plain go test short
	}
	p := buyers.Plan{
		GoodsID: r.goods, Buyers: *buyersFlag, Concurrency: 200, Token: r.BuyerToken,
		Patience: time.Minute, CallTimeout: 5 * time.Second, Spread: spread,
		RetryErrors: true, Repeats: 1, BuysAgainEvery: 3, CancelsEvery: 4,
		OnAccepted: func() { r.promised.Add(1) }, Bases: r.Bases(),
	}
	if f.concurrent {
		p.Concurrency, p.MaxPollInterval = p.Buyers, 3*time.Second
	}
	return p
}

// awaitDrained waits until no order of the sale is pending, in the outbox or unwritten, and Redis
// has every stock move.
func (r *run) awaitDrained(t *testing.T) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		l, err := r.ledger(t)
		f, redisErr := r.RedisFacts(t, r.redis, r.goods)
		if err == nil && redisErr == nil && l.Pending == 0 && l.Balanced &&
			f.Pending == 0 && f.Outbox == 0 && r.Facts(t, r.goods).Unreleased == 0 {
			return
		}
		if time.Since(began) > patience {
			t.Errorf("not drained in %s: ledger %+v, pending %d, outbox %d", patience, l,
				f.Pending, f.Outbox)
			return
		}
	}
}
