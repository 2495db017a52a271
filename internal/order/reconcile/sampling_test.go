package reconcile_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
)

// servers are MySQL, Redis and the metrics of a reconciler. They hold two sales, and Redis has lost
// the older one.
type servers struct {
	reconcile.Store
	reconcile.Redis
	mysqlDown, redisDown atomic.Bool
	samples              chan reconcile.Sample
	slow                 time.Duration // of each read of a sale
	compared             atomic.Int64  // how often the holdings of sale 42 were compared
	raises               bool          // a unit is added and sold before MySQL is read
	raised               atomic.Int64
	behind               time.Duration // of Redis' clock
}

// answer returns the error of every call to a server.
func answer(down *atomic.Bool) error {
	if down.Load() {
		return errors.Join(order.ErrTryAgain, errors.New("no answer"))
	}
	return nil
}

func (s *servers) Now(context.Context) (time.Time, error) {
	return time.Now(), answer(&s.mysqlDown)
}

func (s *servers) LiveGoods(context.Context, []int64) ([]seckill.Sale, error) {
	on := seckill.Sale{Status: seckill.Exposed, EndAt: time.Now().Add(time.Hour), Total: 10}
	lost, kept := on, on
	lost.GoodsID, kept.GoodsID = 41, 42
	return []seckill.Sale{lost, kept}, nil
}

func (s *servers) LiveVersions(context.Context) (map[int64]int64, error) { return nil, nil }

func (s *servers) HasUnpaid(context.Context, int64) (bool, error) { return false, nil }

func (s *servers) Views(context.Context, []int64) map[int64]seckill.View { return nil }

func (s *servers) EndedRests(context.Context) ([]int64, error) { return nil, nil }

func (s *servers) View(_ context.Context, goodsID int64) (seckill.View, error) {
	time.Sleep(s.slow)
	now := time.Now().Add(-s.behind)
	if goodsID == 41 {
		return seckill.View{Gate: seckill.GateMissing, Now: now}, seckill.ErrNotLoaded
	}
	return seckill.View{
		Sale: seckill.Sale{GoodsID: 42, Total: 10 + s.raised.Load()},
		Gate: seckill.GateOpen, Now: now,
		Available: 6, Pending: 1, PendingSince: now.Add(-time.Second), Sold: 2,
		Outbox: 1, OldestAt: now.Add(-2 * time.Second),
	}, answer(&s.redisDown)
}

func (s *servers) Memory(context.Context) (reconcile.Memory, error) {
	return reconcile.Memory{Used: 5}, answer(&s.redisDown)
}

func (s *servers) PendingPages(
	context.Context, int64, int64,
) iter.Seq2[[]order.Pending, error] {
	return func(func([]order.Pending, error) bool) {}
}

func (s *servers) HoldingPages(
	context.Context, int64, int64, time.Time,
) iter.Seq2[[]order.Held, error] {
	s.compared.Add(1)
	return func(yield func([]order.Held, error) bool) {
		if err := answer(&s.mysqlDown); err != nil {
			yield(nil, err)
		}
	}
}

func (s *servers) Settle(context.Context, int64, []string) (int, error) { return 0, nil }

func (s *servers) Database(context.Context, int64) (seckill.Database, error) {
	if s.raises {
		s.raised.Store(1)
	}
	return seckill.Database{Stock: 7, Active: 11}, answer(&s.mysqlDown)
}

func (s *servers) Unreleased(context.Context, int64) (int, time.Time, error) {
	return 0, time.Time{}, answer(&s.mysqlDown)
}

func (s *servers) CountLateOrders(context.Context) (int64, error) { return 0, nil }

func (s *servers) CountDeadLetters(context.Context) (int64, error) {
	return 3, answer(&s.mysqlDown)
}

func (s *servers) CountStoppedRefunds(context.Context) (int64, error) { return 0, nil }

func (s *servers) OldestRefund(context.Context) (time.Time, error) { return time.Time{}, nil }

func (s *servers) Sampled(sample reconcile.Sample) { s.samples <- sample }

func (s *servers) Reconciled(reconcile.Report) {}

// next returns the first sample that begins after the call.
func (s *servers) next() reconcile.Sample {
	<-s.samples
	return <-s.samples
}

// stores are the servers, or some whose methods replace theirs.
type stores interface {
	livesales.Store
	livesales.Redis
	reconcile.Store
	reconcile.Redis
}

// reconcile starts a reconciler of the servers, until cancel; ended then has the result.
func (s *servers) reconcile(t *testing.T) (cancel func(), ended chan error) {
	return s.reconcileAs(t, s)
}

// reconcileAs is reconcile of other stores.
func (s *servers) reconcileAs(t *testing.T, as stores) (cancel func(), ended chan error) {
	log := slog.New(slog.DiscardHandler)
	live := &livesales.List{Store: as, Redis: as, Log: log}
	require.NoError(t, live.Refresh(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended = make(chan error, 1)
	r := &reconcile.Reconciler{
		LedgerReader: reconcile.LedgerReader{Store: as, Redis: as}, Live: live,
		Metrics: s, Log: log,
	}
	go func() { ended <- r.Run(ctx) }()
	return cancel, ended
}

// TestReconciler_SamplesWithoutMySQLButNotWithoutRedis checks that the reconciler samples the
// backlog during an outage of MySQL, and samples nothing during an outage of Redis.
func TestReconciler_SamplesWithoutMySQLButNotWithoutRedis(t *testing.T) {
	synctest.Test(t, sampleThroughOutages)
}

func sampleThroughOutages(t *testing.T) {
	s := &servers{samples: make(chan reconcile.Sample)}
	cancel, ended := s.reconcile(t)
	sample := <-s.samples
	require.EqualValues(t, 3, sample.DeadLetters)
	require.Equal(t, reconcile.Memory{Used: 5}, sample.Memory)
	require.Len(t, sample.Sales, 2)
	newest, older := sample.Sales[0], sample.Sales[1]
	require.EqualValues(t, 42, newest.GoodsID)
	require.True(t, newest.OnSale && newest.Accounted)
	require.EqualValues(t, 1, newest.Difference())
	require.EqualValues(t, 1, newest.Oversold())
	require.False(t, newest.Ledger.Balanced)
	require.Equal(t, time.Second, newest.PendingAge)
	require.Equal(t, 2*time.Second, newest.OutboxAge)
	require.Equal(t, seckill.GateMissing, older.Gate)

	s.mysqlDown.Store(true)
	sample = s.next()
	require.EqualValues(t, 3, sample.DeadLetters, "the last known count")
	require.False(t, sample.Sales[0].Accounted)
	require.Equal(t, time.Second, sample.Sales[0].PendingAge, "the backlog does not need MySQL")

	s.redisDown.Store(true)
	select {
	case <-s.samples: // the sample in progress
	case <-time.After(10 * time.Second):
	}
	select {
	case <-s.samples:
		require.Fail(t, "sampled without Redis")
	case <-time.After(time.Minute):
	}
	cancel()
	require.NoError(t, <-ended)
}

// TestReconciler_RedisClockDecidesWhatIsOnSale samples on a host whose clock is two hours ahead of
// Redis'. Sales that end in the next hour by Redis' clock are on sale, and lost.
func TestReconciler_RedisClockDecidesWhatIsOnSale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{samples: make(chan reconcile.Sample), behind: 2 * time.Hour}
		cancel, ended := s.reconcile(t)
		time.Sleep(2 * time.Hour) // the sales have ended by this host's clock
		for _, sale := range s.next().Sales {
			require.True(t, sale.OnSale, sale.GoodsID)
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestReconciler_RaiseBetweenTwoReadingsIsNotOversold checks the figure for which SeckillOversold
// pages at once.
func TestReconciler_RaiseBetweenTwoReadingsIsNotOversold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{samples: make(chan reconcile.Sample), raises: true}
		cancel, ended := s.reconcile(t)
		newest := (<-s.samples).Sales[0]
		require.True(t, newest.Accounted)
		require.Zero(t, newest.Oversold())
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestReconciler_SamplesEachMinuteWhereThatIsSlow checks the pause after a slow sample. The alert
// SeckillBlind fires if the last sample is a minute old.
func TestReconciler_SamplesEachMinuteWhereThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{samples: make(chan reconcile.Sample), slow: 5 * time.Second}
		cancel, ended := s.reconcile(t)
		require.GreaterOrEqual(t, (<-s.samples).Took, 10*time.Second)
		select {
		case <-s.samples:
		case <-time.After(time.Minute):
			require.Fail(t, "no sample for a minute")
		}
		cancel()
		for {
			select {
			case <-s.samples:
			case err := <-ended:
				require.NoError(t, err)
				return
			}
		}
	})
}

// heavy are servers with ten sales. The sums over the orders of the newest take longer than any
// deadline.
type heavy struct {
	*servers
	light int64 // the newest sale with a quick sum
}

func (s *heavy) LiveGoods(context.Context, []int64) (sales []seckill.Sale, err error) {
	on := seckill.Sale{Status: seckill.Exposed, EndAt: time.Now().Add(time.Hour), Total: 10}
	for on.GoodsID = 41; on.GoodsID <= 50; on.GoodsID++ {
		sales = append(sales, on)
	}
	return sales, nil
}

func (s *heavy) View(_ context.Context, goodsID int64) (seckill.View, error) {
	return seckill.View{
		Sale: seckill.Sale{GoodsID: goodsID, Total: 10}, Gate: seckill.GateOpen, Available: 10,
	}, nil
}

func (s *heavy) Database(ctx context.Context, goodsID int64) (seckill.Database, error) {
	if goodsID <= s.light {
		return seckill.Database{Stock: 10}, nil
	}
	<-ctx.Done()
	return seckill.Database{}, errors.Join(order.ErrTryAgain, ctx.Err())
}

// TestReconciler_SlowSumsAreNoOutageOfMySQL checks that the sum of a large sale hides neither the
// ledgers of older sales nor the dead letters. Many large sales do not delay the sample.
func TestReconciler_SlowSumsAreNoOutageOfMySQL(t *testing.T) {
	for light, accounted := range map[int64]int{48: 8, 41: 0} {
		synctest.Test(t, func(t *testing.T) {
			s := &servers{samples: make(chan reconcile.Sample)}
			cancel, ended := s.reconcileAs(t, &heavy{s, light})
			sample := <-s.samples
			require.EqualValues(t, 3, sample.DeadLetters)
			found := 0
			for _, sale := range sample.Sales {
				if sale.Accounted {
					found++
				}
			}
			require.Equal(t, accounted, found)
			require.Less(t, sample.Took, 10*time.Second)
			cancel()
			require.NoError(t, <-ended)
		})
	}
}

// resting are servers with one sale at rest.
type resting struct {
	*servers
	views atomic.Int64
}

func restingSale() seckill.Sale {
	return seckill.Sale{
		GoodsID: 42, Status: seckill.Exposed, EndAt: time.Now().Add(time.Hour).Truncate(time.Hour),
		Total: 10, Stock: 7,
	}
}

func (s *resting) LiveGoods(context.Context, []int64) ([]seckill.Sale, error) {
	return []seckill.Sale{restingSale()}, nil
}

func (s *resting) View(context.Context, int64) (seckill.View, error) {
	s.views.Add(1)
	return seckill.View{
		Sale: restingSale(), Gate: seckill.GateOpen, Available: 7, Sold: 3, Now: time.Now(),
	}, nil
}

func (s *resting) Views(ctx context.Context, _ []int64) map[int64]seckill.View {
	v, _ := s.View(ctx, 42)
	return map[int64]seckill.View{42: v}
}

func (s *resting) Database(context.Context, int64) (seckill.Database, error) {
	return seckill.Database{Stock: 7, Active: 3}, nil
}

// TestReconciler_SamplesSaleAtRestFromItsRow checks that such a sample is the same as one of a sale
// that is read, and costs no read.
func TestReconciler_SamplesSaleAtRestFromItsRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &resting{servers: &servers{samples: make(chan reconcile.Sample)}}
		log := slog.New(slog.DiscardHandler)
		live := &livesales.List{Store: s, Redis: s, Log: log}
		require.NoError(t, live.Refresh(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		r := &reconcile.Reconciler{
			LedgerReader: reconcile.LedgerReader{Store: s, Redis: s}, Live: live, Metrics: s,
			Log: log,
		}
		listCtx, stopList := context.WithCancel(ctx)
		go func() { ended <- live.Run(listCtx) }()
		go func() { ended <- r.Run(ctx) }()
		read := (<-s.samples).Sales
		for len(live.Sales()) > 0 {
			<-s.samples
		}
		stopList()
		require.NoError(t, <-ended)
		s.next()
		views := s.views.Load()
		require.Equal(t, read, s.next().Sales)
		require.Equal(t, views, s.views.Load())
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestReconciler_ComparesHoldingsHourly checks that the reconciler does not read all orders of a
// sale in each round. It tries again at once after an error.
func TestReconciler_ComparesHoldingsHourly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := &servers{}, slog.New(slog.DiscardHandler)
		live := &livesales.List{Store: s, Log: log}
		require.NoError(t, live.Refresh(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		r := &reconcile.Reconciler{
			LedgerReader: reconcile.LedgerReader{Store: s, Redis: s}, Live: live, Log: log,
		}
		s.mysqlDown.Store(true)
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(12 * time.Second)
		require.EqualValues(t, 3, s.compared.Load())
		s.mysqlDown.Store(false)
		time.Sleep(150 * time.Minute)
		require.EqualValues(t, 3+3, s.compared.Load())
		cancel()
		require.NoError(t, <-ended)
	})
}
