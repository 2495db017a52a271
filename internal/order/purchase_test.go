package order_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestPurchase_SucceedsWhileQueueIsDown checks that the purchase service accepts orders without the
// queue, and that the relay publishes them when the queue is up again. The buyer can then pay.
func TestPurchase_SucceedsWhileQueueIsDown(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	h.queue.down.Store(true)
	sn := h.buy(sale.GoodsID, 7, 3)
	require.Equal(t, order.Queued, h.find(7, sn).Status)
	_, err := h.Payments.Pay(t.Context(), buyer(7), sn)
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err), "a queued order can't be paid")
	h.runWorkers(settings())
	h.queue.down.Store(false)
	o := h.becomes(7, sn, order.Created)
	require.EqualValues(t, 3*250, o.Amount)
	require.Equal(t, "韩梅梅", o.Name)
	require.WithinDuration(t, o.CreatedAt.Add(time.Hour), o.PayBy, time.Second)
	h.settles(sale.GoodsID, 7, 3)
	must.Get(h.Payments.Pay(t.Context(), buyer(7), sn))(t)
	h.becomes(7, sn, order.Paid)
	h.settles(sale.GoodsID, 7, 3)
	require.Eventually(t, func() bool { // the relay removes the entry after the order is settled
		v, err := h.redis.View(t.Context(), sale.GoodsID)
		return err == nil && v.Outbox == 0
	}, within, tick)
}

// TestWriter_BadOrderDoesNotFailBatch checks that an unwritable order, an order over the limit and
// an unreadable message become dead letters. Each dead letter records its number of deliveries, its
// publish time and its queue. The batch writer writes all other orders of the batch.
func TestWriter_BadOrderDoesNotFailBatch(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	h.queue.down.Store(true)
	var lines []reservation.OrderLine
	for id := range int64(5) {
		lines = append(lines, h.pending(sale.GoodsID, h.buy(sale.GoodsID, id+1, 1))...)
	}
	bad, overLimit := lines[2], h.numbered(sale.GoodsID, 1, 8)
	lines[2].Name = strings.Repeat("x", 1000) // longer than the column
	overLimit.Quantity = 6
	h.confirmAll(sale.GoodsID) // the relay publishes no copies
	h.queue.down.Store(false)
	published := time.Now()
	h.publishLater(sale.GoodsID, h.lines(sale.GoodsID, append(lines, overLimit)...))
	h.publishLater(sale.GoodsID, []byte(`{"goodsId":`))
	for range 2 { // a consumer takes both messages and stops without an ack
		stream := must.Get(h.queue.Open(t.Context(), 0))(t)
		<-stream.Deliveries()
		<-stream.Deliveries()
		require.NoError(t, stream.Close())
	}
	h.runWorkers(settings())
	h.settles(sale.GoodsID, 6, 4)
	failed := h.find(3, bad.OrderSn)
	require.Equal(t, order.Failed, failed.Status)
	require.Equal(t, order.FailedUnwritten, failed.FailureReason)
	require.Eventually(t, func() bool { return len(h.deadLetters()) == 3 }, within, tick)
	reasons := map[order.FailureReason]string{}
	for _, d := range must.Get(h.DeadLetters.List(t.Context(), "", 10))(t) {
		reasons[d.Reason] = d.OrderSn
		require.Equal(t, 3, d.Attempts, "%+v", d)
		require.Equal(t, "memory.0", d.Origin, "%+v", d)
		require.WithinRange(t, d.FirstSeenAt, published.Truncate(time.Millisecond), time.Now(),
			"%+v", d)
	}
	require.Equal(t, map[order.FailureReason]string{
		order.FailedUnwritten: bad.OrderSn,
		order.FailedOverLimit: overLimit.OrderSn,
		order.FailedMalformed: "",
	}, reasons)
	h.becomes(3, h.buy(sale.GoodsID, 3, 5), order.Created)
}

// killed is a queue that loses the first acknowledgement of each message, as if its consumer was
// killed before it.
type killed struct {
	order.Source
	order.Stream
	acks *atomic.Int64
}

func (k killed) Open(ctx context.Context, shard int) (_ order.Stream, err error) {
	k.Stream, err = k.Source.Open(ctx, shard)
	return k, err
}

func (k killed) Ack(tag uint64) error {
	if k.acks.Add(1)%2 == 1 {
		return errors.New("killed by the test")
	}
	return k.Stream.Ack(tag)
}

// TestWriter_RedeliveredMessageHasOneDeadLetter checks that an unreadable message and a forged
// line, which the queue delivers again to the next consumer, are one dead letter each.
func TestWriter_RedeliveredMessageHasOneDeadLetter(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	forged := h.numbered(sale.GoodsID, 1, 7)
	forged.BuyerID = "8"
	h.parts.Source = killed{Source: h.queue, acks: new(atomic.Int64)}
	h.runWorkers(settings())
	for _, body := range [][]byte{[]byte(`{"goodsId":`), h.lines(sale.GoodsID, forged)} {
		require.NoError(t, h.queue.Publish(t.Context(), sale.GoodsID, body))
	}
	require.Len(t, h.deadLetters(), 2)
}

// publishLater sends a message and does not wait for its confirm. The queue confirms it once the
// workers run.
func (h *fixture) publishLater(goods int64, body []byte) {
	h.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.queue.Publish(h.t.Context(), goods, body)
	}()
	h.t.Cleanup(func() { <-done })
}

// TestPlace_UnconfirmedOrderIsUnavailable checks that the purchase service answers 503 if an
// available queue does not confirm in time. A retry with the same path returns the order that the
// first request reserved.
func TestPlace_UnconfirmedOrderIsUnavailable(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	p := h.request(sale.GoodsID, 7, 1)
	for range 2 { // no consumer runs, so the queue confirms nothing
		_, err := h.Purchases.Place(t.Context(), p)
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
		require.Equal(t, 1, strings.Count(err.Error(), "again"), err)
	}
	h.runWorkers(settings())
	sn := h.place(p)
	h.becomes(7, sn, order.Created)
	h.settles(sale.GoodsID, 9, 1)
}

// lagging is a Redis whose replicas may lack the latest reservations.
type lagging struct {
	purchase.ReservationStore
	behind atomic.Bool
}

func (l *lagging) Reserve(
	ctx context.Context, goodsID, epoch int64, rs []reservation.Reservation,
) (reservation.Result, error) {
	g, err := l.ReservationStore.Reserve(ctx, goodsID, epoch, rs)
	if l.behind.Load() {
		g.NotReplicated = errors.New("too few replicas")
	}
	return g, err
}

// TestPlace_UnreplicatedReservationIsUnavailable checks that the purchase service answers 503 while
// too few replicas have a reservation. A later retry returns the same order. A refusal needs no
// replicas.
func TestPlace_UnreplicatedReservationIsUnavailable(t *testing.T) {
	h := newFixture(t)
	h.runWorkers(settings())
	goods := h.exposeSale(5, 1).GoodsID
	redis := &lagging{ReservationStore: h.redis}
	service := purchase.NewService(catalog.NewSaleReader(h.redis, h.store), redis, h.Orders,
		h.queue, h.keys, nil, nil, nil, time.Second, h.parts.Log)
	p := h.request(goods, 7, 1)

	redis.behind.Store(true)
	for range 2 { // the first call reserves, and the second finds the path used
		_, err := service.Place(t.Context(), p)
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
	}
	h.settles(goods, 4, 1) // the order is written all the same
	other := p
	other.Buyer = buyer(8)
	_, err := service.Place(t.Context(), other)
	require.Equal(t, apierror.BadPath, apierror.ReasonOf(err))
	redis.behind.Store(false)
	sn := must.Get(service.Place(t.Context(), p))(t)
	h.becomes(7, sn, order.Created)
}

// TestPlace_ParkedOrderIsUnavailable checks that a repeated path of a parked order is answered 503.
// The order may still fail, and 202 would promise it.
func TestPlace_ParkedOrderIsUnavailable(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(1, 1)
	p := h.request(sale.GoodsID, 7, 1)
	n := must.Get(h.keys.VerifyPath(p.Path, sale.GoodsID, p.Buyer.ID, time.Now()))(t)
	late := reservation.OrderLine{OrderSn: n.String(), BuyerID: p.Buyer.ID, Quantity: 2}
	adopted := must.Get(h.redis.Adopt(t.Context(), sale.GoodsID, sale.Epoch, 0,
		[]reservation.OrderLine{late}))(t)
	require.Zero(t, adopted[late.OrderSn], "Redis knows the number, and too few units are left")
	h.park(sale.GoodsID, late)
	_, err := h.Purchases.Place(t.Context(), p)
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
}

// slowRedis answers late.
type slowRedis struct{ purchase.ReservationStore }

const answersAfter = 100 * time.Millisecond

func (r slowRedis) Reserve(
	ctx context.Context, goodsID, epoch int64, rs []reservation.Reservation,
) (reservation.Result, error) {
	g, err := r.ReservationStore.Reserve(ctx, goodsID, epoch, rs)
	time.Sleep(answersAfter)
	return g, err
}

// TestPlace_PublishDeadlineBeginsWithReservation checks that a late answer of Redis leaves no time
// to publish: a rebuild waits for that deadline after it has shut the gate. The relay publishes the
// order.
func TestPlace_PublishDeadlineBeginsWithReservation(t *testing.T) {
	h := newFixture(t)
	h.runWorkers(settings())
	goods := h.exposeSale(5, 1).GoodsID
	service := purchase.NewService(catalog.NewSaleReader(h.redis, h.store), slowRedis{h.redis},
		h.Orders, h.queue, h.keys, nil, nil, nil, answersAfter/2, h.parts.Log)
	_, err := service.Place(t.Context(), h.request(goods, 7, 1))
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
	h.settles(goods, 4, 1)
}

// TestPlace_EndedSaleIsRebuiltFirst checks that a path of an ended sale is not refused before the
// rebuild: its order may still be in the queue.
func TestPlace_EndedSaleIsRebuiltFirst(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 1).GoodsID
	h.queue.down.Store(true) // Redis alone has the order
	p := h.request(goods, 7, 1)
	h.place(p)
	h.exec(`UPDATE sales SET end_at = ?`, time.Now().Add(-time.Second).UnixMilli())
	h.mini.FlushAll()
	_, err := h.Purchases.Place(t.Context(), p)
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
}
