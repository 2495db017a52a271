package order_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
)

// surveyed is MySQL, Redis and the observer of a survey: two sales, of which Redis has lost the older one.
type surveyed struct {
	reconcile.Store
	reconcile.RedisStore
	mu                  sync.Mutex
	mysqlAway, redisOff bool
	dead                int64
	told                chan reconcile.Sample
}

var errSurveyed = errors.New("no answer")

func (s *surveyed) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// mysql is the error of MySQL's answers.
func (s *surveyed) mysql() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mysqlAway {
		return errors.Join(order.ErrTryAgain, errSurveyed)
	}
	return nil
}

func (s *surveyed) redis() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redisOff {
		return errSurveyed
	}
	return nil
}

func (s *surveyed) LiveGoods(context.Context, time.Time) ([]seckill.Sale, error) {
	on := seckill.Sale{Status: seckill.Exposed, EndAt: time.Now().Add(time.Hour), Total: 10}
	lost, kept := on, on
	lost.GoodsID, kept.GoodsID = 41, 42
	return []seckill.Sale{lost, kept}, nil
}

func (s *surveyed) View(_ context.Context, goodsID int64) (seckill.View, error) {
	if goodsID == 41 {
		return seckill.View{}, seckill.ErrNotLoaded
	}
	now := time.Now()
	return seckill.View{
		Sale: seckill.Sale{GoodsID: 42, Total: 10}, Gate: seckill.GateOpen, Now: now, Available: 6, Pending: 1, PendingSince: now.Add(-time.Second),
		Sold: 2, Outbox: 1, OldestAt: now.Add(-2 * time.Second),
	}, s.redis()
}

func (s *surveyed) Memory(context.Context) (reconcile.Memory, error) {
	return reconcile.Memory{Used: 5}, s.redis()
}

func (s *surveyed) PendingPage(context.Context, int64, uint64, int64) ([]order.Pending, uint64, error) {
	return nil, 0, nil
}

func (s *surveyed) Database(context.Context, int64) (seckill.Database, error) {
	return seckill.Database{Stock: 7, Active: 11}, s.mysql()
}

func (s *surveyed) OldestUnreleasedMove(context.Context, int64) (time.Time, error) {
	return time.Time{}, s.mysql()
}

func (s *surveyed) CountDeadLetters(context.Context) (int64, error) { return s.dead, s.mysql() }

func (s *surveyed) Sampled(found reconcile.Sample) { s.told <- found }

// next is the survey after the one that may be under way.
func (s *surveyed) next() reconcile.Sample {
	<-s.told
	return <-s.told
}

func TestASurveyGoesOnWithoutMySQLAndStopsWithoutRedis(t *testing.T) {
	s := &surveyed{dead: 3, told: make(chan reconcile.Sample)}
	log := slog.New(slog.DiscardHandler)
	live := livesales.New(s, time.Hour, log)
	live.Refresh(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- reconcile.NewSampler(live, s, s, reconcile.NewReconciler(nil, s, s, nil, nil, log), s, log).Run(ctx)
	}()

	found := <-s.told
	require.EqualValues(t, 3, found.DeadLetters)
	require.Equal(t, reconcile.Memory{Used: 5}, found.Memory)
	require.Len(t, found.Sales, 2)
	newest, older := found.Sales[0], found.Sales[1]
	require.EqualValues(t, 42, newest.GoodsID)
	require.True(t, newest.OnSale && newest.Accounted)
	require.EqualValues(t, 1, newest.Difference())
	require.EqualValues(t, 1, newest.Oversold())
	require.False(t, newest.Ledger.Balanced)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, []time.Duration{newest.PendingAge, newest.OutboxAge})
	require.Equal(t, seckill.GateMissing, older.Gate)

	s.set(func() { s.mysqlAway = true })
	found = s.next()
	require.EqualValues(t, 3, found.DeadLetters, "those that were counted last")
	require.False(t, found.Sales[0].Accounted)
	require.Equal(t, time.Second, found.Sales[0].PendingAge, "the backlog is told all the same")

	s.set(func() { s.redisOff = true })
	select {
	case <-s.told: // the one that was under way
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	select {
	case <-s.told:
		require.Fail(t, "told without Redis")
	case err := <-ended:
		require.NoError(t, err)
	}
}
