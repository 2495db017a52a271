package order_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/deadletter"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
)

// asleepStore is the store of a rebuilder that sleeps after it has taken its token, once.
type asleepStore struct {
	*sqlstore.Store
	meanwhile func()
}

func (s *asleepStore) NextRebuildToken(
	ctx context.Context, goodsID int64,
) (rebuild.Token, error) {
	token, err := s.Store.NextRebuildToken(ctx, goodsID)
	if meanwhile := s.meanwhile; meanwhile != nil {
		s.meanwhile = nil
		meanwhile()
	}
	return token, err
}

func isRebuilder(w app.Worker) bool { _, is := w.(*rebuild.Worker); return is }

func (h *fixture) rebuilder(store rebuild.Store) *rebuild.Rebuilder {
	return &rebuild.Rebuilder{
		Opener: rebuild.Opener{Store: store, Redis: h.redis, PaymentTimeout: time.Hour},
		Outbox: &outbox.Publisher{Store: h.redis, Queue: h.queue, Timeout: time.Second},
		Queue:  h.queue, PublishTimeout: time.Millisecond, Log: h.parts.Log,
	}
}

// epochOf requires that the gate of a sale is open, and returns its epoch in Redis.
func (h *fixture) epochOf(goods int64) int64 {
	h.t.Helper()
	v := h.view(goods)
	require.Equal(h.t, seckill.GateOpen, v.Gate)
	return v.Epoch
}

// TestRebuild_AsleepShutsNoNewerEpoch has a rebuilder sleep before it shuts the gate. It must not
// shut the gate of the epoch that another one has opened meanwhile. A gate is shut whose epoch
// MySQL has lost in a failover.
func TestRebuild_AsleepShutsNoNewerEpoch(t *testing.T) {
	h := newFixture(t)
	h.onMariaDB()
	h.onRedis()
	goods := h.exposeSale(10, 5).GoodsID
	h.runAllBut(isRebuilder)
	asleep := &asleepStore{h.store, func() {
		require.Eventually(t, func() bool {
			lock := fmt.Sprintf("sk:{%d}:rebuild", goods)
			require.NoError(t, h.parts.Redis.Del(t.Context(), lock).Err()) // it has ended
			_, err := h.rebuilder(h.store).Rebuild(t.Context(), goods, "test")
			return err == nil
		}, within, tick)
	}}
	_, err := h.rebuilder(asleep).Rebuild(t.Context(), goods, "test")
	require.ErrorIs(t, err, rebuild.ErrFenced)
	newer := h.epochOf(goods)
	require.Greater(t, newer, int64(1))
	h.buy(goods, 7, 1)

	h.exec(`UPDATE sales SET epoch = 1 WHERE goods_id = ?`, goods)
	require.Eventually(t, func() bool {
		_, err := h.rebuilder(h.store).Rebuild(t.Context(), goods, "test")
		return err == nil
	}, within, tick)
	require.Greater(t, h.epochOf(goods), newer)
}

// asleepRedis is the Redis of a process that sleeps after it has viewed a sale.
type asleepRedis struct {
	reconcile.Redis
	meanwhile func()
}

func (r asleepRedis) View(ctx context.Context, goodsID int64) (seckill.View, error) {
	v, err := r.Redis.View(ctx, goodsID)
	r.meanwhile()
	return v, err
}

// TestCompareHoldings_AsleepShutsNoNewerEpoch has a reconciler sleep before it shuts the gate of a
// sale that lacks orders. It must not shut the gate of the epoch that has them again.
func TestCompareHoldings_AsleepShutsNoNewerEpoch(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(10, 2).GoodsID
	h.runAllBut(isRebuilder)
	h.becomes(7, h.buy(goods, 7, 2), order.Created)
	h.settles(goods, 8, 2)
	h.mini.HDel(fmt.Sprintf("sk:{%d}:buyers", goods), "7")
	r := h.reconciler(h.parts.Log)
	r.Redis = asleepRedis{h.redis, func() {
		must.Get(h.rebuilder(h.store).Rebuild(t.Context(), goods, "test"))(t)
	}}
	err := r.CompareHoldings(t.Context(), h.view(goods))
	require.EqualValues(t, 2, h.epochOf(goods))
	require.ErrorIs(t, err, rebuild.ErrFenced)
}

// asleepAfterDrains is the store of a rebuilder that sleeps after the barrier of its last drain.
type asleepAfterDrains struct {
	*sqlstore.Store
	drains    int
	meanwhile func()
}

func (s *asleepAfterDrains) BarrierReached(
	ctx context.Context, goodsID, epoch, token int64,
) (bool, error) {
	reached, err := s.Store.BarrierReached(ctx, goodsID, epoch, token)
	if reached {
		if s.drains++; s.drains == 3 {
			s.meanwhile()
		}
	}
	return reached, err
}

// TestRebuild_AsleepFailsNoOrderOfANewerEpoch has a rebuilder sleep before it gives up an order
// that MySQL refuses. It must fail no order of the epoch that another one has opened meanwhile.
// These orders are on their way.
func TestRebuild_AsleepFailsNoOrderOfANewerEpoch(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(10, 2).GoodsID
	h.queue.down.Store(true)
	bad := h.buy(goods, 1, 1)
	h.queue.down.Store(false)
	h.refuse(bad)
	h.runAllBut(isRebuilder)
	var sn string
	asleep := &asleepAfterDrains{Store: h.store, meanwhile: func() {
		h.mini.Del(fmt.Sprintf("sk:{%d}:rebuild", goods)) // the lock has ended
		must.Get(h.rebuilder(h.store).Rebuild(t.Context(), goods, "test"))(t)
		h.queue.down.Store(true)
		sn = h.buy(goods, 7, 1)
	}}
	_, err := h.rebuilder(asleep).Rebuild(t.Context(), goods, "test")
	require.ErrorIs(t, err, rebuild.ErrFenced)
	require.Equal(t, order.Queued, h.find(7, sn).Status)
	h.queue.down.Store(false)
	h.becomes(7, sn, order.Created)
	require.Len(t, h.deadLetters(), 1)
}

// asleepReconciler is the store of a reconciler that sleeps before it returns an order's units.
type asleepReconciler struct {
	*sqlstore.Store
	meanwhile func()
}

func (s asleepReconciler) ReturnUnits(
	ctx context.Context, goodsID int64, l reservation.OrderLine, now time.Time,
) error {
	s.meanwhile()
	return s.Store.ReturnUnits(ctx, goodsID, l, now)
}

// failed writes an order of a buyer for one unit as failed.
func (h *fixture) failed(goods, buyer int64) (reservation.OrderLine, []order.StockMove) {
	h.t.Helper()
	l := h.numbered(goods, 1, buyer)
	out := must.Get(h.store.WriteFailed(h.t.Context(), l,
		order.DeadLetter{GoodsID: goods, Reason: order.FailedUnwritten}, time.Now()))(h.t)
	return l, out.Moves
}

// released writes an order of a buyer for one unit as failed, and releases it in Redis.
func (h *fixture) released(goods, buyer int64) reservation.OrderLine {
	h.t.Helper()
	l, moves := h.failed(goods, buyer)
	h.releaser().Release(h.t.Context(), moves)
	return l
}

// unsettling is a Redis that fails before it settles orders.
type unsettling struct{ deadletter.Redis }

func (unsettling) Settle(context.Context, int64, []string) (int, error) {
	return 0, context.DeadlineExceeded
}

// TestReconcile_AsleepReturnsNoUnitsOfARequeuedOrder has a reconciler sleep before it returns the
// units of a failed order. It must not return them once an operator has requeued the order.
func TestReconcile_AsleepReturnsNoUnitsOfARequeuedOrder(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 2).GoodsID
	l := h.released(goods, 7)
	must.Get(h.redis.Retake(t.Context(), goods, 1, 2, l))(t)
	h.mini.SetTime(time.Now().Add(6 * time.Second))
	h.aged(6 * time.Second)
	r := h.reconciler(h.parts.Log)
	r.Store = asleepReconciler{h.store, func() {
		h.DeadLetters.Redis = unsettling{h.redis}
		must.Get(h.DeadLetters.Requeue(t.Context(), operator, h.deadLetters()[0].ID))(t)
	}}
	_, err := r.Reconcile(t.Context(), goods)
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err))
	moves := must.Get(h.store.MovesOfOrder(t.Context(), goods, l.OrderSn))(t)
	h.releaser().Release(t.Context(), moves)
	v := h.view(goods)
	require.Equal(t, must.Get(h.store.Sale(t.Context(), goods))(t).Stock, v.Available,
		"Redis sells units that MySQL does not have")
	h.runWorkers(settings())
	h.settles(goods, 4, 1)
}

// asleepRequeue is the store of a requeue that sleeps after it has read the dead letter.
type asleepRequeue struct {
	*sqlstore.Store
	meanwhile func()
}

func (s asleepRequeue) DeadLetter(ctx context.Context, id string) (order.DeadLetter, error) {
	d, err := s.Store.DeadLetter(ctx, id)
	s.meanwhile()
	return d, err
}

// TestRequeue_AsleepRestoresNoOrderThatWasDecided has a requeue sleep after it has read the order's
// dead letter. It must change nothing if the order is requeued and cancelled meanwhile, or
// discarded. The units that it has taken return at once.
func TestRequeue_AsleepRestoresNoOrderThatWasDecided(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*fixture, order.DeadLetter)
		refusal   apierror.Reason
		status    order.Status
	}{
		"requeued and cancelled": {func(h *fixture, d order.DeadLetter) {
			must.Get(h.DeadLetters.Requeue(t.Context(), operator, d.ID))(t)
			h.settles(d.GoodsID, 4, 1)
			must.Get(h.Payments.Cancel(t.Context(), buyer(7), d.OrderSn))(t)
			h.settles(d.GoodsID, 5, 0)
		}, apierror.Conflict, order.Cancelled},
		"discarded": {func(h *fixture, d order.DeadLetter) {
			require.NoError(t, h.DeadLetters.Discard(t.Context(), operator, d.ID))
		}, apierror.NotFound, order.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			h.onMariaDB()
			h.onRedis()
			goods := h.exposeSale(5, 1).GoodsID
			l, _ := h.failed(goods, 7)
			h.runWorkers(settings())
			h.settles(goods, 5, 0)
			d := h.deadLetters()[0]
			asleep := *h.DeadLetters
			asleep.Store = asleepRequeue{h.store, func() { c.meanwhile(h, d) }}
			_, err := asleep.Requeue(t.Context(), operator, d.ID)
			v := h.view(goods)
			require.Equal(t, []int64{5, 0, 0}, []int64{v.Available, v.Pending, v.Sold})
			require.Equal(t, c.refusal, apierror.ReasonOf(err), "%v", err)
			require.Equal(t, c.status, h.find(7, l.OrderSn).Status)
			h.settles(goods, 5, 0)
			h.becomes(7, h.buy(goods, 7, 1), order.Created)
			h.settles(goods, 4, 1)
		})
	}
}

// TestRequeue_UnwrittenOrderKeepsItsUnits checks that a requeue does not return the units of an
// order that MySQL has never had: it is pending in Redis, and its message comes again.
func TestRequeue_UnwrittenOrderKeepsItsUnits(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 5).GoodsID
	h.queue.down.Store(true)
	sn := h.buy(goods, 2, 3)
	h.queue.down.Store(false)
	dead := order.DeadLetter{
		ID: order.DeadLetterID(sn), GoodsID: goods, OrderSn: sn, Reason: order.FailedUnwritten,
		FirstSeenAt: time.Now(), Body: message.EncodeOrder(goods, h.pending(goods, sn)[0]),
	}
	require.NoError(t, h.store.AddDeadLetter(t.Context(), dead))
	_, err := h.DeadLetters.Requeue(t.Context(), operator, dead.ID)
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err), "%v", err)
	v := h.view(goods)
	require.EqualValues(t, []int64{2, 3}, []int64{v.Available, v.Pending})
	h.runWorkers(settings())
	h.settles(goods, 2, 3)
	h.becomes(2, sn, order.Created)
}

// TestRequeue_LeavesRoomForANewerOrder checks that a requeue takes no units beyond the limit that
// the buyer has reached by an order on its way: MySQL lacks that order, and would refuse it
// afterwards.
func TestRequeue_LeavesRoomForANewerOrder(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 1).GoodsID
	l := h.released(goods, 7)
	h.queue.down.Store(true)
	newer := h.buy(goods, 7, 1)
	h.queue.down.Store(false)
	_, err := h.DeadLetters.Requeue(t.Context(), operator, h.deadLetters()[0].ID)
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err), "%v", err)
	h.runWorkers(settings())
	h.becomes(7, newer, order.Created)
	h.becomes(7, l.OrderSn, order.Failed)
	h.settles(goods, 4, 1)
}

// TestRequeue_SucceedsAfterARebuild checks that a requeue that has met a shut gate does not block
// the next one: its planned return belongs to an epoch that the rebuild has ended.
func TestRequeue_SucceedsAfterARebuild(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 1).GoodsID
	l := h.released(goods, 7)
	h.mini.FlushAll()
	_, err := h.DeadLetters.Requeue(t.Context(), operator, h.deadLetters()[0].ID)
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "%v", err)
	h.runWorkers(settings())
	h.settles(goods, 5, 0)
	must.Get(h.DeadLetters.Requeue(t.Context(), operator, h.deadLetters()[0].ID))(t)
	h.becomes(7, l.OrderSn, order.Created)
	h.settles(goods, 4, 1)
}

// TestRequeue_BringsARetiredSaleBack requeues an order of a sale that was closed long ago and
// retired. The workers serve the sale again at once, so the operator who asks again need not wait.
func TestRequeue_BringsARetiredSaleBack(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 1).GoodsID
	l := h.released(goods, 7)
	must.Get(h.Sales.Close(t.Context(), operator, goods))(t)
	h.exec(`UPDATE sales SET closed_at = ?`, time.Now().Add(-30*24*time.Hour).UnixMilli())
	retirer := rebuild.Retirer{Store: h.store, Redis: h.redis, Log: h.parts.Log}
	require.NoError(t, retirer.RunOnce(t.Context()))
	require.True(t, h.retired(goods))
	h.mini.FlushAll()
	list := &livesales.List{Store: h.store, Log: h.parts.Log}
	require.NoError(t, list.Refresh(t.Context()))
	require.Empty(t, list.Sales())
	_, err := h.DeadLetters.Requeue(t.Context(), operator, h.deadLetters()[0].ID)
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "%v", err)
	require.NoError(t, list.Refresh(t.Context()))
	require.Len(t, list.Sales(), 1)
	h.runWorkers(settings())
	h.settles(goods, 5, 0)
	must.Get(h.DeadLetters.Requeue(t.Context(), operator, h.deadLetters()[0].ID))(t)
	h.becomes(7, l.OrderSn, order.Created)
}

// asleepRetirer is the Redis of a retirer that sleeps after it has viewed a sale, once.
type asleepRetirer struct {
	rebuild.Redis
	meanwhile func()
}

func (r *asleepRetirer) View(ctx context.Context, goodsID int64) (seckill.View, error) {
	v, err := r.Redis.View(ctx, goodsID)
	if meanwhile := r.meanwhile; meanwhile != nil {
		r.meanwhile = nil
		meanwhile()
	}
	return v, err
}

// TestRetirer_AsleepRetiresNoSaleThatSells checks a sale whose end its merchant moves into the
// future and back while the retirer sleeps. Redis is away the second time and sells on. No worker
// would bring the end of a retired sale there, and a close would be answered.
func TestRetirer_AsleepRetiresNoSaleThatSells(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 1).GoodsID
	change := func(c salechange.Change) error {
		_, err := h.Sales.Change(t.Context(), operator, goods, c, salechange.IdempotencyKey{})
		return err
	}
	now := time.Now()
	over := salechange.Change{EndAt: new(now.Add(-48 * time.Hour))}
	require.NoError(t, change(salechange.Change{
		StartAt: new(now.Add(-72 * time.Hour)), EndAt: over.EndAt,
	}))
	asleep := &asleepRetirer{h.redis, func() {
		require.NoError(t, change(salechange.Change{EndAt: new(now.Add(time.Hour))}))
		h.mini.SetError("LOADING Redis is loading the dataset in memory")
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(change(over)))
		h.mini.SetError("")
	}}
	retirer := rebuild.Retirer{Store: h.store, Redis: asleep, Log: h.parts.Log}
	for range 2 {
		require.NoError(t, retirer.RunOnce(t.Context()))
		require.False(t, h.retired(goods))
	}
	require.NoError(t, change(over))
	require.NoError(t, retirer.RunOnce(t.Context()))
	require.True(t, h.retired(goods))
}

// deadRedis loses its connections as soon as it settles an order.
type deadRedis struct {
	deadletter.Redis
	dead bool
}

func (r *deadRedis) Retake(
	ctx context.Context, goodsID, epoch, limit int64, l reservation.OrderLine,
) (int64, error) {
	if r.dead {
		return 0, context.DeadlineExceeded
	}
	return r.Redis.Retake(ctx, goodsID, epoch, limit, l)
}

func (r *deadRedis) Settle(context.Context, int64, []string) (int, error) {
	r.dead = true
	return 0, context.DeadlineExceeded
}

// TestRequeue_PlansNoReturnOfARestoredOrder has two operators requeue an order while Redis stops
// answering. The second one must not leave a planned return: the releaser would return the units of
// the order, which is created and not settled yet.
func TestRequeue_PlansNoReturnOfARestoredOrder(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 1).GoodsID
	l := h.released(goods, 7)
	d := h.deadLetters()[0]
	h.DeadLetters.Redis = &deadRedis{Redis: h.redis}
	asleep := *h.DeadLetters
	asleep.Store = asleepRequeue{h.store, func() {
		must.Get(h.DeadLetters.Requeue(t.Context(), operator, d.ID))(t)
	}}
	o := must.Get(asleep.Requeue(t.Context(), operator, d.ID))(t)
	require.Equal(t, order.Created, o.Status)
	require.Empty(t, must.Get(h.store.MovesOfOrder(t.Context(), goods, l.OrderSn))(t))
	v := h.view(goods)
	require.Equal(t, []int64{4, 1}, []int64{v.Available, v.Pending})
}

// TestRelease_WaitsForARequeueThatCommits has a requeue whose COMMIT takes so long that the planned
// return of its units is due. The releaser must not have Redis return units that MySQL has sold.
func TestRelease_WaitsForARequeueThatCommits(t *testing.T) {
	h := newFixture(t)
	h.onMariaDB()
	goods := h.exposeSale(5, 1).GoodsID
	l, undo := h.failed(goods, 7)
	must.Get(h.redis.Retake(t.Context(), goods, 1, 2, l))(t)
	require.EqualValues(t, 4, h.view(goods).Available)

	db := must.Get(sql.Open(h.driver, h.file))(t)
	defer db.Close()
	tx := must.Get(db.BeginTx(t.Context(), nil))(t)
	must.Get(tx.ExecContext(t.Context(),
		"DELETE FROM stock_moves WHERE order_sn = ?", l.OrderSn))(t)
	released := make(chan struct{})
	go func() {
		defer close(released)
		h.releaser().Release(t.Context(), undo)
	}()
	select {
	case <-released:
		t.Error("the releaser did not wait for the transaction that deletes its move")
	case <-time.After(300 * time.Millisecond):
	}
	require.NoError(t, tx.Commit())
	<-released
	v := h.view(goods)
	require.EqualValues(t, []int64{4, 1}, []int64{v.Available, v.Pending})
}
