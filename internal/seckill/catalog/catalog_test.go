package catalog_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/testing/must"
)

// partialRedis is a Redis cluster with failed masters and a MySQL with three sales.
type partialRedis struct {
	catalog.Redis
	down map[int64]bool
}

var (
	errNoAnswer  = errors.New("no answer")
	databaseTime = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
)

func (h partialRedis) View(_ context.Context, goodsID int64) (seckill.View, error) {
	if h.down[goodsID] {
		return seckill.View{}, errNoAnswer
	}
	return seckill.View{Sale: seckill.Sale{GoodsID: goodsID}, Available: 5}, nil
}

func (h partialRedis) Sale(_ context.Context, goodsID int64) (seckill.Sale, error) {
	return seckill.Sale{GoodsID: goodsID, Total: 10, Stock: 7}, nil
}

// Now is a clock that differs from this host's.
func (h partialRedis) Now(context.Context) (time.Time, error) { return databaseTime, nil }

func (h partialRedis) ExposedSales(
	ctx context.Context, _ int64, _ int,
) (list []seckill.Sale, err error) {
	for goodsID := range int64(3) {
		sale, _ := h.Sale(ctx, goodsID)
		list = append(list, sale)
	}
	return list, nil
}

// TestSales_FailedMasterLeavesOtherSalesListed checks that the catalog reads the sales of a failed
// master from MySQL. It fails only if every master has failed.
func TestSales_FailedMasterLeavesOtherSalesListed(t *testing.T) {
	h := partialRedis{down: map[int64]bool{1: true}}
	sales := catalog.NewCatalog(catalog.NewSaleReader(h, h), nil)
	views := must.Get(sales.Sales(t.Context(), 0, 3))(t)
	for i, want := range []int64{5, 7, 5} {
		require.EqualValues(t, i, views[i].GoodsID)
		require.Equal(t, want, views[i].Available)
	}
	require.Equal(t, seckill.GateMissing, views[1].Gate, "the catalog reads the sale from MySQL")
	require.Equal(t, databaseTime, views[1].Now)

	h.down[0], h.down[2] = true, true
	_, err := sales.Sales(t.Context(), 0, 3)
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "every master failed")
}

func TestListCache_ReadsAPageOncePerSecond(t *testing.T) {
	clock := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	var calls atomic.Int64
	list := func(_ context.Context, below int64, _ int) ([]seckill.View, error) {
		calls.Add(1)
		sale := seckill.Sale{GoodsID: below + 20}
		return []seckill.View{{Sale: sale, Now: clock}}, nil
	}
	cache := catalog.NewListCache(list, func() time.Time { return clock })
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			views := must.Get(cache.Sales(t.Context(), nil, 0, 20))(t)
			require.EqualValues(t, 20, views[0].GoodsID)
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, calls.Load())
	clock = clock.Add(999 * time.Millisecond)
	views := must.Get(cache.Sales(t.Context(), nil, 0, 20))(t)
	require.EqualValues(t, 1, calls.Load())
	require.Equal(t, clock, views[0].Now, "the cache adds the page's age")
	clock = clock.Add(time.Millisecond)
	must.Get(cache.Sales(t.Context(), nil, 0, 20))(t)
	require.EqualValues(t, 2, calls.Load())
}

// TestListCache_InventedCursorsCostNoReads checks that pages from any cursor are right. Callers who
// choose cursors and page sizes neither cause reads nor displace what others read.
func TestListCache_InventedCursorsCostNoReads(t *testing.T) {
	const sales = 250
	calls := 0
	list := func(_ context.Context, below int64, limit int) (found []seckill.View, _ error) {
		calls++
		if below == 0 || below > sales {
			below = sales + 1
		}
		for id := below - 1; id > 0 && len(found) < limit; id-- {
			found = append(found, seckill.View{Sale: seckill.Sale{GoodsID: id}})
		}
		return found, nil
	}
	cache := catalog.NewListCache(list, func() time.Time { return time.UnixMilli(0) })
	for below := range int64(sales + 50) {
		for _, limit := range []int{1, 21, 101} {
			want := must.Get(list(t.Context(), below, limit))(t)
			calls--
			got := must.Get(cache.Sales(t.Context(), nil, below, limit))(t)
			require.Len(t, got, len(want), "%d below %d", limit, below)
			for i := range got {
				require.Equal(t, want[i].GoodsID, got[i].GoodsID, "%d below %d", limit, below)
			}
		}
	}
	require.Equal(t, 3, calls, "all sales fit on three pages")
}

// readTime is the time of one read of the fake Redis.
const readTime = 2 * time.Millisecond

// fakeRedis has one sale. Its clock is an hour ahead of the node's clock. synctest makes all times
// exact.
type fakeRedis struct {
	catalog.SaleStore
	mu    sync.Mutex
	view  seckill.View
	reads atomic.Int64
}

func newFakeRedis(change func(*seckill.View)) *fakeRedis {
	s := &fakeRedis{view: seckill.View{Available: 10, Sale: seckill.Sale{
		GoodsID: 42, Epoch: 1, Status: seckill.Exposed, StartAt: redisClock().Add(-time.Hour),
		EndAt: redisClock().Add(time.Hour),
	}}}
	s.change(change)
	return s
}

func (s *fakeRedis) EndRest(context.Context, int64) error { return nil }

func redisClock() time.Time { return time.Now().Add(time.Hour).Truncate(time.Millisecond) }

func (s *fakeRedis) change(how func(*seckill.View)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(&s.view)
}

// View reads the state after half of readTime.
func (s *fakeRedis) View(context.Context, int64) (seckill.View, error) {
	s.reads.Add(1)
	time.Sleep(readTime / 2)
	defer time.Sleep(readTime / 2)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view
	v.Now = redisClock()
	return v, nil
}

// rush is ten buyers that each send a request every millisecond. It records the first time of each
// answer.
type rush struct {
	mu       sync.Mutex
	answers  int
	waited   int                           // answers after a wait
	reasons  map[apierror.Reason]time.Time // the first time of each reason ("": admitted)
	finished sync.WaitGroup
}

func startRush(ctx context.Context, sales *catalog.Catalog) *rush {
	r := &rush{reasons: make(map[apierror.Reason]time.Time)}
	for range 10 {
		r.finished.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				err := knownError(sales, 42) // as the HTTP handler does
				if err == nil {
					_, err = sales.Admit(context.Background(), 42)
				}
				r.note(apierror.ReasonOf(err), time.Since(began))
				time.Sleep(time.Millisecond)
			}
		})
	}
	return r
}

// knownError is what a node answers from memory; nil if it must read the sale.
func knownError(c *catalog.Catalog, goodsID int64) error {
	v, known := c.Known(goodsID)
	if !known {
		return nil
	}
	return v.CheckSelling(v.Now, v.Available)
}

func (r *rush) note(reason apierror.Reason, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers++
	if took > 0 {
		r.waited++
	}
	if _, seen := r.reasons[reason]; !seen {
		r.reasons[reason] = time.Now()
	}
}

// first returns the time of the first answer with a reason.
func (r *rush) first(t *testing.T, reason apierror.Reason) time.Time {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	at, seen := r.reasons[reason]
	require.True(t, seen, "no buyer got %q", reason)
	return at
}

func newCatalog(s *fakeRedis) *catalog.Catalog {
	return catalog.NewCatalog(catalog.NewSaleReader(s, s), testKeys())
}

func testKeys() *ordersn.Keys { return ordersn.NewKeys([]byte("a secret of the tests")) }

// during runs a rush, changes the sale after 100 ms and continues for 200 ms.
func during(t *testing.T, s *fakeRedis, change func(*seckill.View)) (r *rush, at time.Time) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r = startRush(ctx, newCatalog(s))
	time.Sleep(100 * time.Millisecond)
	s.change(change)
	at = time.Now()
	time.Sleep(200 * time.Millisecond)
	stop()
	r.finished.Wait()
	return r, at
}

// maxDelay is the greatest delay after which buyers see a change. It is the TTL of an old view plus
// a read that waits for another read.
const maxDelay = catalog.ViewTTL + 2*readTime

// TestCatalog_RushIsAnsweredFromMemory checks that fewer than 2 % of the requests of a rush read
// Redis. Only the caller that renews a view waits for it.
func TestCatalog_RushIsAnsweredFromMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeRedis(func(v *seckill.View) { v.Available = 0 })
		r, _ := during(t, s, func(*seckill.View) {})
		require.Greater(t, r.answers, 1000)
		require.Less(t, float64(s.reads.Load())/float64(r.answers), 0.02)
		require.Less(t, r.waited, 2*10+int(s.reads.Load()),
			"ten callers wait at the start, and one per renewal")
		require.Len(t, r.reasons, 1)
		r.first(t, apierror.SoldOut)
	})
}

// TestCatalog_ChangesAppearWithinTTL checks how soon buyers see a change. The cache holds no shut
// gate, so they see it open at the next read.
func TestCatalog_ChangesAppearWithinTTL(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(*seckill.View)
		seen          apierror.Reason // of the first buyer who sees the change
		within        time.Duration
	}{
		"units return": {
			func(v *seckill.View) { v.Available = 0 },
			func(v *seckill.View) { v.Available = 1 }, "", maxDelay,
		},
		"the sale closes": {
			func(*seckill.View) {},
			func(v *seckill.View) { v.Status = seckill.Closed }, apierror.Ended, maxDelay,
		},
		"the gate shuts": {
			func(*seckill.View) {},
			func(v *seckill.View) { v.Gate = seckill.GateShut }, apierror.Unavailable, maxDelay,
		},
		"the gate opens": {
			func(v *seckill.View) { v.Gate = seckill.GateLease },
			func(v *seckill.View) { v.Gate = seckill.GateOpen }, "", 2 * readTime,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, changed := during(t, newFakeRedis(c.before), c.after)
				require.LessOrEqual(t, r.first(t, c.seen).Sub(changed), c.within)
			})
		})
	}
}

// TestCatalog_StartAndEndAreNotDelayed checks that the cache delays neither the start nor the end
// of a sale. Redis' clock decides both, to the millisecond.
func TestCatalog_StartAndEndAreNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(130*time.Millisecond + 300*time.Microsecond)
		end := start.Add(77 * time.Millisecond)
		s := newFakeRedis(
			func(v *seckill.View) { v.StartAt, v.EndAt = start.Add(time.Hour), end.Add(time.Hour) },
		)
		r, _ := during(t, s, func(*seckill.View) {})
		opened, ended := r.first(t, ""), r.first(t, apierror.Ended)
		require.GreaterOrEqual(t, opened, start)
		require.LessOrEqual(t, opened.Sub(start), 2*readTime+time.Millisecond)
		require.LessOrEqual(t, ended.Sub(end), 2*readTime+time.Millisecond)
	})
}

// TestCatalog_SingleCallerGetsCurrentState checks that a caller without concurrent callers always
// gets the current state.
func TestCatalog_SingleCallerGetsCurrentState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeRedis(func(*seckill.View) {})
		sales := newCatalog(s)
		for units := range int64(20) {
			s.change(func(v *seckill.View) { v.Available = units })
			v := must.Get(sales.Sale(t.Context(), 42))(t)
			require.Equal(t, units, v.Available)
		}
	})
}

// TestIssuePath_CallsNothing checks that a path verifies without Redis, and lives its whole life by
// Redis' clock however long the limiter delayed the buyer.
func TestIssuePath_CallsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeRedis(func(*seckill.View) {})
		sales := newCatalog(s)
		v := must.Get(sales.Admit(t.Context(), 42))(t)
		admitted := time.Now()
		time.Sleep(50 * time.Second) // the limiter's queue, on the bubble's clock
		reads := s.reads.Load()
		path, expires, err := sales.IssuePath(v, admitted, "7")
		require.NoError(t, err)
		require.Equal(t, reads, s.reads.Load())
		n := must.Get(testKeys().VerifyPath(path, 42, "7", redisClock()))(t)
		require.Equal(t, expires, n.ExpiresAt())
		require.True(t, v.Now.Add(50*time.Second+ordersn.PathTTL).Equal(expires))
	})
}
