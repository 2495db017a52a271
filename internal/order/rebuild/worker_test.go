package rebuild

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
)

// lostSales are sales that a restarted Redis has lost. It records the order in which rebuilds shut
// their gates.
type lostSales struct {
	Store
	sales []seckill.Sale
	asked []int64        // goods ids that requests wait for
	well  map[int64]bool // goods ids of sales that Redis has
	mu    sync.Mutex
	shut  []int64
	views int // that were read
}

// newLostSales returns sales that have begun and end after a time.
func newLostSales(n int64, ends time.Duration) *lostSales {
	l, now := &lostSales{well: make(map[int64]bool)}, time.Now()
	for id := range n {
		l.sales = append(l.sales, seckill.Sale{
			GoodsID: id + 1, Status: seckill.Exposed, StartAt: now.Add(-2 * time.Hour),
			EndAt: now.Add(ends),
		})
	}
	return l
}

// lostRedis is the Redis of lostSales.
type lostRedis struct {
	Redis
	lost *lostSales
}

func (l *lostSales) LiveGoods(context.Context, []int64) ([]seckill.Sale, error) {
	return l.sales, nil
}

func (*lostSales) LiveVersions(context.Context) (map[int64]int64, error) { return nil, nil }

func (*lostSales) HasUnpaid(context.Context, int64) (bool, error) { return false, nil }

func (r lostRedis) View(ctx context.Context, goodsID int64) (seckill.View, error) {
	return r.Views(ctx, []int64{goodsID})[goodsID], nil
}

func (r lostRedis) Views(_ context.Context, goodsIDs []int64) map[int64]seckill.View {
	r.lost.mu.Lock()
	defer r.lost.mu.Unlock()
	r.lost.views += len(goodsIDs)
	views := make(map[int64]seckill.View, len(goodsIDs))
	for _, id := range goodsIDs {
		v := seckill.View{Gate: seckill.GateLease, Sale: seckill.Sale{GoodsID: id}}
		if r.lost.well[id] {
			v.Gate = seckill.GateOpen
		}
		views[id] = v
	}
	return views
}

func (r lostRedis) EndedRests(context.Context) ([]int64, error) {
	r.lost.mu.Lock()
	defer r.lost.mu.Unlock()
	return r.lost.asked, nil
}

func (lostRedis) LockRebuild(
	context.Context, int64, time.Duration,
) (func(), bool, error) {
	return func() {}, true, nil
}

func (l *lostSales) NextRebuildToken(context.Context, int64) (Token, error) { return Token{}, nil }

func (l *lostSales) EndOpening(context.Context, int64, int64) (string, error) { return "", nil }

func (r lostRedis) Shut(_ context.Context, goodsID, _ int64) (string, error) {
	r.lost.mu.Lock()
	defer r.lost.mu.Unlock()
	r.lost.shut = append(r.lost.shut, goodsID)
	return "", nil
}

func (l *lostSales) order() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.shut)
}

// run runs a worker whose rebuilds wait for an hour once they have shut their gates.
func (l *lostSales) run(t *testing.T, maxRebuilds int) {
	log := slog.New(slog.DiscardHandler)
	list := &livesales.List{Store: l, Redis: lostRedis{lost: l}, Log: log}
	require.NoError(t, list.Refresh(t.Context()))
	w := Worker{Live: list, MaxRebuilds: maxRebuilds, Rebuilder: &Rebuilder{
		Opener: Opener{Store: l, Redis: lostRedis{lost: l}}, PublishTimeout: time.Hour, Log: log,
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var both errgroup.Group
	both.Go(func() error { return list.Run(ctx) })
	both.Go(func() error { return w.Run(ctx) })
	t.Cleanup(func() { cancel(); require.NoError(t, both.Wait()) })
}

// TestWorker_LostSalesWaitTogether checks that lost sales wait at the same time, although fewer
// work at a time. Too many sales that are over do not keep out the newest, which sells now.
func TestWorker_LostSalesWaitTogether(t *testing.T) {
	const newest = maxOthers + 100
	l := newLostSales(newest, -time.Hour)
	l.sales[newest-1].EndAt = time.Now().Add(time.Hour)
	l.run(t, 0)
	require.Eventually(t, func() bool { return len(l.order()) == maxOthers+1 }, time.Minute,
		time.Millisecond)
	require.Contains(t, l.order(), int64(newest))
}

// TestWorker_AskedSalesDoNotWaitForOthers checks that a lost sale that requests wait for is rebuilt
// although as many others as are allowed are under way.
func TestWorker_AskedSalesDoNotWaitForOthers(t *testing.T) {
	const newest = maxOngoing + 100
	l := newLostSales(newest, time.Hour)
	l.asked = []int64{newest}
	l.run(t, 0)
	require.Eventually(t, func() bool { return len(l.order()) == maxOngoing+1 }, time.Minute,
		time.Millisecond)
	require.Contains(t, l.order(), int64(newest))
}

// TestWorker_MaxRebuildsBoundsThoseUnderWay checks the bound, and that a sale that requests wait
// for has a place of its own.
func TestWorker_MaxRebuildsBoundsThoseUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 10
		l := newLostSales(100, time.Hour)
		l.asked = []int64{100}
		l.run(t, most)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, l.order(), most+1)
		require.Contains(t, l.order(), int64(100))
	})
}

// TestWorker_ManySalesCostAsMuchAsFew counts the views that are read in ten seconds while 800 sales
// sell. It counts again while processes ask to serve all of them although Redis has them: their
// messages were not confirmed. It checks that the sales are rebuilt soon after Redis has lost them.
func TestWorker_ManySalesCostAsMuchAsFew(t *testing.T) {
	for name, asked := range map[string]bool{"selling": false, "asked": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const sales = 800
				l := newLostSales(sales, time.Hour)
				for id := range int64(sales) {
					l.well[id+1] = true
					if asked {
						l.asked = append(l.asked, id+1)
					}
				}
				l.run(t, 0)
				time.Sleep(10 * time.Second)
				l.mu.Lock()
				views := l.views
				clear(l.well)
				l.mu.Unlock()
				require.Less(t, views, 6000)
				time.Sleep(time.Second)
				synctest.Wait()
				require.Len(t, l.order(), sales)
			})
		})
	}
}

// TestWorker_NewlyAskedSaleIsCheckedAtOnce checks that each lost sale is rebuilt within a second of
// the request that asks for it. Requests ask also for many sales that Redis has.
func TestWorker_NewlyAskedSaleIsCheckedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sales, lost = 800, 10
		l := newLostSales(sales, -time.Hour)
		for id := range int64(sales) {
			if l.well[id+1] = true; id < sales-lost {
				l.asked = append(l.asked, id+1)
			}
		}
		l.run(t, 0)
		for id := int64(sales - lost + 1); id <= sales; id++ {
			time.Sleep(time.Minute)
			l.mu.Lock()
			l.asked = append(l.asked, id)
			delete(l.well, id)
			l.mu.Unlock()
			time.Sleep(time.Second)
			synctest.Wait()
			require.Contains(t, l.order(), id)
		}
	})
}

// TestSlots_AskedSaleIsNext checks that a free slot goes to a sale that requests wait for, although
// another has waited longer. Otherwise it goes to the one that has waited longest.
func TestSlots_AskedSaleIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, func(goodsID int64) bool { return goodsID == 3 })
		s.take(1)
		var took []int64
		for _, goodsID := range []int64{2, 3, 4} {
			go func() {
				s.take(goodsID)
				took = append(took, goodsID)
				s.free()
			}()
			synctest.Wait()
		}
		s.free()
		synctest.Wait()
		require.Equal(t, []int64{3, 2, 4}, took)
	})
}

// TestSlots_SleepReturnsTheSlot checks that a rebuild holds no slot while it sleeps and has one
// again afterwards. So no more work at a time than there are slots.
func TestSlots_SleepReturnsTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, func(int64) bool { return false })
		s.take(1)
		var slept, took bool
		go func() {
			_ = s.sleep(t.Context(), 1, time.Second)
			slept = true
		}()
		synctest.Wait()
		s.take(2)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.False(t, slept, "another rebuild has the slot")
		s.free()
		synctest.Wait()
		require.True(t, slept)
		go func() {
			s.take(3)
			took = true
		}()
		synctest.Wait()
		require.False(t, took)
		s.free()
		synctest.Wait()
		require.True(t, took)
	})
}

func TestUrgency_OngoingBeforeUpcomingBeforeOver(t *testing.T) {
	now := time.Now()
	sale := seckill.Sale{Status: seckill.Exposed, StartAt: now, EndAt: now.Add(time.Hour)}
	require.Equal(t, 0, urgency(sale, now))
	require.Equal(t, 1, urgency(sale, now.Add(-time.Second)))
	require.Equal(t, 2, urgency(sale, sale.EndAt))
	sale.Status = seckill.Closed
	require.Equal(t, 2, urgency(sale, now))
}
