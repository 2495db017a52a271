package faults

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/test/faults/check"
)

var (
	soakFlag      = flag.Duration("faults.soak", 30*time.Second, "how long TestSoak starts sales")
	soakSalesFlag = flag.Int("faults.soak-sales", 4, "sales of TestSoak at a time")
	soakRateFlag  = flag.Float64("faults.soak-rate", 20, "purchases per second of all these sales")
	soakEveryFlag = flag.Duration("faults.soak-every", 10*time.Second, "time between two faults")
)

// soakFaults are the faults that need only what TestSoak starts.
func soakFaults() []string {
	return []string{
		"api-killed", "consumer-killed", "consumer-paused", "all-restarted", "redis-killed",
		"redis-lost-a-second", "redis-emptied", "redis-flushall", "redis-paused",
		"redis-killed-again", "two-rebuilders", "rabbit-emptied", "mysql-killed-twice",
		"mysql-paused", "cut-api-redis", "cut-api-rabbit", "cut-consumer-redis",
		"cut-consumer-rabbit", "cut-consumer-mysql",
	}
}

// soak runs sales that come and go, and faults among them.
type soak struct {
	*installation.Installation
	rng     *rand.Rand
	redis   redis.UniversalClient
	faults  []fault
	buyer   int64 // the last buyer's id
	ended   chan *soakSale
	closed  map[string]bool // sales that were judged
	samples []sample
}

// soakSale is one sale of a soak and what its buyers were answered.
type soakSale struct {
	*run
	report buyers.Report
	err    error
}

// sample is what an installation uses at a moment.
type sample struct {
	at         time.Duration
	goroutines float64          // of all programs
	memory     float64          // of all programs, MB
	redisKeys  int              // without those of sales that were judged, which stay for a day
	redisMB    float64          // of all keys
	rows       map[string]int64 // of each table
}

// TestSoak sells for a long time: sales come and go, every third buyer cancels, all other orders
// expire unpaid, and one fault after another breaks something. Each sale is judged as by
// TestFaults. At the end the programs may use no more memory than early in the run, and Redis may
// have no more keys. MySQL may have more rows only where rows are kept on purpose. The Makefile's
// soak runs it for an hour.
func TestSoak(t *testing.T) {
	s := &soak{
		Installation: installation.Start(t, suite, installation.Options{
			APIs: 2, Consumers: 2, Wired: true, OwnRabbit: true,
			Env: []string{
				fmt.Sprintf("SECKILL_ORDER_SHARDS=%d", defaultShards),
				"SECKILL_PAYMENT_TIMEOUT=10s",
			},
		}),
		rng: rand.New(rand.NewPCG(*seedFlag, 0)), ended: make(chan *soakSale, *soakSalesFlag),
		closed: map[string]bool{},
	}
	s.redis = s.RedisClient(t)
	s.faults = slices.DeleteFunc(allFaults(), func(f fault) bool {
		return !slices.Contains(soakFaults(), f.name)
	})
	require.Len(t, s.faults, len(soakFaults()), "a name is no fault's")
	began := time.Now()
	for range *soakSalesFlag {
		s.putUp(t)
	}
	sampled, broke := began, began
	var over []*soakSale // whose buyers have ended
	running, orders := *soakSalesFlag, 0
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for running > 0 || len(over) > 0 {
		selling := time.Since(began) < *soakFlag
		select {
		case sale := <-s.ended:
			require.NoError(t, sale.err)
			over = append(over, sale)
			if running--; selling {
				s.putUp(t)
				running++
			}
		case <-tick.C:
		}
		if len(over) > 0 && s.ordersEnded(t, over[0]) {
			orders += s.judge(t, over[0])
			over = over[1:]
		}
		if time.Since(sampled) >= *soakFlag/60 {
			sampled = time.Now()
			s.sample(t, sampled.Sub(began))
		}
		if time.Since(broke) >= *soakEveryFlag && selling {
			s.injectFault(t)
			broke = time.Now()
		}
	}
	for len(s.samples) <= 12 { // on a slow machine the steps above take the time of some samples
		time.Sleep(*soakFlag / 60)
		s.sample(t, time.Since(began))
	}
	require.Positive(t, orders, "nothing was sold")
	fmt.Printf("soak: %d sales, %d orders, %s\n", len(s.closed), orders,
		time.Since(began).Round(time.Second))
	s.requireNoGrowth(t)
}

// putUp starts a sale whose buyers arrive for some time.
func (s *soak) putUp(t *testing.T) {
	lasts := min(*soakFlag/4, time.Minute+time.Duration(s.rng.Int64N(int64(2*time.Minute))))
	rate := *soakRateFlag / float64(*soakSalesFlag)
	sale := &soakSale{run: &run{
		Installation: s.Installation, shards: defaultShards, rng: s.rng, redis: s.redis,
		units: 1 + int64(rate*12), // of orders that live for ten seconds or more
		start: time.Now().Add(-time.Minute).Truncate(time.Millisecond), ended: make(chan struct{}),
	}}
	sale.end = sale.start.Add(24 * time.Hour)
	sale.goods = s.newSale(t, sale.units, sale.start, sale.end)
	plan := buyers.Plan{
		GoodsID: sale.goods, Buyers: 1 + int(rate*lasts.Seconds()), Concurrency: 200,
		Token: s.BuyerToken, Patience: time.Minute, CallTimeout: 5 * time.Second, Spread: lasts,
		RetryErrors: true, Repeats: 1, CancelsEvery: 3, Bases: s.Bases(), FirstID: s.buyer + 1,
	}
	s.buyer += int64(plan.Buyers)
	go func() {
		sale.report, sale.err = buyers.Run(t.Context(), plan)
		s.ended <- sale
	}()
}

// newSale puts up a sale. The API may answer 503 while other sales still recover from a fault, so
// it asks again, for as long as any recovery may take.
func (s *soak) newSale(t *testing.T, units int64, start, end time.Time) (goods string) {
	var err error
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if goods, err = s.TryPutUpFor(t, units, 1, start, end); err == nil {
			return goods
		}
		require.True(t, time.Now().Before(until), "%v", err)
	}
}

// injectFault injects a random one of the faults, and waits until a sale of its own sells again.
func (s *soak) injectFault(t *testing.T) {
	f := s.faults[s.rng.IntN(len(s.faults))]
	goods := s.newSale(t, 10, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
	among := &run{
		Installation: s.Installation, goods: goods, shards: defaultShards, rng: s.rng,
		redis: s.redis, ended: make(chan struct{}),
	}
	close(among.ended) // the fault waits for no buyer of this sale
	f.inject(t, among)
	t.Logf("%s: recovered after %s", f.name, among.awaitRecovery(t).Round(time.Millisecond))
	s.closeSale(t, goods)
}

// ordersEnded reports whether every order of a sale has been cancelled or has expired. It fails the
// test where that takes too long.
func (s *soak) ordersEnded(t *testing.T, sale *soakSale) bool {
	facts := s.Facts(t, sale.goods)
	if facts.Stock == facts.Total && facts.Units == 0 {
		return true // it may have waited for other sales to be judged
	}
	since := time.Since(sale.report.Started.Add(sale.report.Took))
	require.Less(t, since, 2*patience, "orders of goods %s are still active", sale.goods)
	return false
}

// judge judges a sale whose orders have ended, and closes it. It returns the number of orders.
func (s *soak) judge(t *testing.T, sale *soakSale) (orders int) {
	sale.awaitDrained(t)
	history := sale.records(t, sale.report)
	history.Final = sale.finalStatuses(t, history)
	for _, v := range check.Judge(history, check.Allowance{}).Violations {
		t.Errorf("goods %s: %s", sale.goods, v)
	}
	s.closeSale(t, sale.goods)
	s.closed[sale.goods] = true
	return len(history.Rows)
}

// closeSale repeats the call, because the API may answer 503 while it recovers from a fault.
func (s *soak) closeSale(t *testing.T, goods string) {
	merchant := s.Merchant(t)
	defer merchant.HTTP.CloseIdleConnections()
	require.Eventually(t, func() bool {
		return merchant.Do(t.Context(), http.MethodPost, "/admin/sales/"+goods+"/close", nil,
			nil) == nil
	}, patience, 100*time.Millisecond)
}

func (s *soak) sample(t *testing.T, at time.Duration) {
	now := sample{at: at, rows: s.TableRows(t)}
	for _, p := range slices.Concat(s.APIs, s.Consumers) {
		now.goroutines += p.Metric(t, "go_goroutines")
		now.memory += p.Memory(t, "VmRSS")
	}
	keys := s.redis.Scan(t.Context(), 0, "*", 1000).Iterator()
	for keys.Next(t.Context()) {
		_, tag, _ := strings.Cut(keys.Val(), "{")
		if goods, _, _ := strings.Cut(tag, "}"); !s.closed[goods] {
			now.redisKeys++
		}
	}
	require.NoError(t, keys.Err())
	info, err := s.redis.Info(t.Context(), "memory").Result()
	require.NoError(t, err)
	_, used, _ := strings.Cut(info, "used_memory:")
	_, err = fmt.Sscan(used, &now.redisMB)
	require.NoError(t, err)
	now.redisMB /= 1e6
	s.samples = append(s.samples, now)
	t.Logf("%s: %.0f goroutines, %.0f MB; Redis: %d keys, %.1f MB; rows: %s", at.Round(time.Second),
		now.goroutines, now.memory, now.redisKeys, now.redisMB, listed(now.rows))
}

// keptTables have rows that stay: the orders and what explains them, for as long as retention says.
func keptTables() []string {
	return []string{
		"sales", "orders", "buyer_holdings", "stock_moves", "sale_audit", "events", "barriers",
	}
}

// requireNoGrowth compares the samples at the end of the run with those after a sixth of it, when
// the first sales have ended. The memory of Redis is only logged: judged sales stay there for a
// day.
func (s *soak) requireNoGrowth(t *testing.T) {
	n := len(s.samples)
	early, late := s.samples[n/6:n/6+n/12+1], s.samples[n-n/12-1:]
	atMost := func(what string, of func(sample) float64, more float64) {
		before, after := median(early, of), median(late, of)
		fmt.Printf("soak: %s: %.0f early, %.0f at the end\n", what, before, after)
		require.LessOrEqual(t, after, 1.5*before+more, what)
	}
	atMost("goroutines", func(s sample) float64 { return s.goroutines }, 100)
	atMost("MB of the programs", func(s sample) float64 { return s.memory }, 60)
	atMost("keys in Redis", func(s sample) float64 { return float64(s.redisKeys) }, 200)
	for table := range s.samples[n-1].rows {
		if !slices.Contains(keptTables(), table) {
			atMost("rows of "+table, func(s sample) float64 { return float64(s.rows[table]) }, 100)
		}
	}
}

func median(samples []sample, of func(sample) float64) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func listed(rows map[string]int64) string {
	var words []string
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		if rows[table] > 0 {
			words = append(words, fmt.Sprintf("%s %d", table, rows[table]))
		}
	}
	return strings.Join(words, ", ")
}
