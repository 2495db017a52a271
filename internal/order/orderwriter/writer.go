package orderwriter

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/workers"
)

// Metrics receives the results of transactions.
type Metrics interface {
	// Wrote reports a committed transaction and the time since its first try.
	Wrote(out order.Outcome, took time.Duration)
	// Retried reports a transaction that failed and is tried again.
	Retried(cause RetryCause)
	// DeadLettered reports a message that became a dead letter without a row.
	DeadLettered(reason order.FailureReason)
}

// BatchStore is MySQL for the writer. Infrastructure errors include order.ErrTryAgain, because a
// new transaction may succeed.
type BatchStore interface {
	order.Clock
	// WriteBatch writes order lines of one goods in one transaction. It parks late lines that are
	// not adopted if the batch asks for that. The error is an *AdoptError for such lines otherwise,
	// seckill.ErrNoSuchGoods, or the problem of one of the lines.
	WriteBatch(ctx context.Context, b Batch) (order.Outcome, error)
	// WriteFailed writes one order as failed, with its dead letter, which has its goods and the
	// reason. It leaves a written order alone.
	WriteFailed(
		ctx context.Context, l reservation.OrderLine, d order.DeadLetter, now time.Time,
	) (order.Outcome, error)
	// AddDeadLetter keeps a message that has no row.
	AddDeadLetter(ctx context.Context, d order.DeadLetter) error
	// RecordBarrier records that every message before the barrier is committed.
	RecordBarrier(ctx context.Context, goodsID int64, b message.Barrier, now time.Time) error
}

// Redis holds the reservations that the writer settles and adopts.
type Redis interface {
	// Settle turns pending reservations into sold units and returns how many it changed.
	Settle(ctx context.Context, goodsID int64, sns []string) (int, error)
	// Adopt takes units of the present epoch for orders of an older one and returns the units that
	// each has now. Other units than a line's void the line: its buyer has repeated the path with
	// another quantity. It refuses an order with which its buyer would hold more than limit units
	// (0: no limit). The error is a *seckill.GateError unless the epoch's gate is open.
	Adopt(
		ctx context.Context, goodsID, epoch, limit int64, lines []reservation.OrderLine,
	) (map[string]int64, error)
}

// Writer writes batches of received messages. It commits the lines of each goods in one transaction
// and settles them in Redis. It retries infrastructure errors until they end. If MySQL refuses an
// order, only that order becomes a dead letter.
type Writer struct {
	Store    BatchStore
	Redis    Redis
	Releaser *inventory.StockReleaser
	Keys     *ordersn.Keys
	Metrics  Metrics      // may be nil
	Tracer   order.Tracer // may be nil
	// PaymentTimeout is how long an order may stay unpaid.
	PaymentTimeout time.Duration
	Log            *slog.Logger
}

// Write writes a batch of deliveries to MySQL. It calls ack with n whenever the first n messages of
// the batch are written. So the publishers of one sale do not wait for the sales behind it. Write
// fails only if ctx ends first or ack fails. The queue redelivers the messages that are not
// acknowledged.
func (w *Writer) Write(ctx context.Context, batch []received, ack func(n int) error) error {
	work := w.sort(batch)
	if len(work.dead) > 0 { // without the order numbers, so that a sale's lines are one
		w.Log.ErrorContext(ctx, "messages are not valid and become dead letters; "+
			"SECKILL_ORDER_SECRET and SECKILL_JWT_SECRET must be the same on every node, and no "+
			"other program may publish to the queue",
			"queue", work.dead[0].Origin)
	}
	for _, d := range work.dead {
		if err := w.addDeadLetter(ctx, d); err != nil {
			return err
		}
	}
	if err := w.writeGoods(ctx, work, ack); err != nil {
		return err
	}
	for _, b := range work.barriers {
		record := func() error {
			now, err := w.Store.Now(ctx)
			if err != nil {
				return err
			}
			return w.Store.RecordBarrier(ctx, b.goodsID, b.Barrier, now)
		}
		if err := w.retry(ctx, "record a barrier", b.goodsID, record); err != nil {
			return err
		}
	}
	return ack(len(batch))
}

// writeGoods writes the lines of a batch, for several goods at a time, because each waits for a
// commit and for Redis.
func (w *Writer) writeGoods(ctx context.Context, work sorted, ack func(n int) error) error {
	p := progress{ack: ack, doneBefore: work.doneBefore, written: make([]bool, len(work.goods))}
	places := make([]int, len(work.goods))
	for i := range places {
		places[i] = i
	}
	workers.Each(ctx, places, func(ctx context.Context, i int) {
		p.end(i, w.writeLines(ctx, work.goods[i], work.lines[work.goods[i]]))
	})
	if p.err == nil && p.next < len(places) {
		return ctx.Err()
	}
	return p.err
}

// writeLines commits order lines of one goods, all in one transaction if possible.
func (w *Writer) writeLines(ctx context.Context, goodsID int64, lines []sourcedLine) error {
	began := time.Now()
	out, lost, err := w.commit(ctx, goodsID, lines)
	switch {
	case err == nil:
		w.committed(ctx, goodsID, out, began)
		return w.fail(ctx, goodsID, lost, order.FailedLost)
	case ctx.Err() != nil:
		return err
	case errors.Is(err, seckill.ErrNoSuchGoods):
		return w.fail(ctx, goodsID, lines, order.FailedNoSale)
	case len(lines) == 1:
		w.Log.ErrorContext(ctx, "cannot write an order",
			"goods_id", goodsID, "order_sn", lines[0].OrderSn, "err", err)
		return w.fail(ctx, goodsID, lines, order.FailedUnwritten)
	}
	// MySQL refuses at least one line. Bisection isolates it, so that the others are written.
	half := len(lines) / 2
	if err := w.writeLines(ctx, goodsID, lines[:half]); err != nil {
		return err
	}
	return w.writeLines(ctx, goodsID, lines[half:])
}

// commit tries transactions until one commits or MySQL refuses a line. It also returns the lost
// lines: those of older epochs for which no units are left. They are not written. Late lines that
// no open gate adopts are parked.
func (w *Writer) commit(
	ctx context.Context, goodsID int64, lines []sourcedLine,
) (out order.Outcome, lost []sourcedLine, err error) {
	ctx, end := order.StartSpan(ctx, w.Tracer, "commit in MySQL")
	defer func() { end(err) }()
	var adopted adoption
	err = w.retry(ctx, "write orders", goodsID, func() error {
		at, err := order.ReadTimes(ctx, w.Store, w.PaymentTimeout)
		if err != nil {
			return err
		}
		b := newBatch(goodsID, lines, adopted, at)
		out, err = w.Store.WriteBatch(ctx, b)
		late, ok := errors.AsType[*AdoptError](err)
		if !ok {
			return err
		}
		adopted = w.adopt(ctx, b, late)
		var refused []sourcedLine
		lines, refused = splitAdopted(lines, adopted.units)
		lost = append(lost, refused...)
		return errAdopted
	})
	return out, lost, err
}

// newBatch makes the batch of one transaction. Of a repeated order number the first delivery
// counts.
func newBatch(goodsID int64, lines []sourcedLine, adopted adoption, at order.Times) Batch {
	b := Batch{
		GoodsID: goodsID, Lines: make([]reservation.OrderLine, len(lines)),
		Deliveries: make(map[string]order.DeliveryInfo, len(lines)),
		Adopted:    adopted.units, Epoch: adopted.epoch, Park: adopted.park,
		Times: at,
	}
	for i, l := range lines {
		b.Lines[i] = l.OrderLine
		if _, repeated := b.Deliveries[l.OrderSn]; !repeated {
			b.Deliveries[l.OrderSn] = l.delivery
		}
	}
	return b
}

// committed settles orders in Redis after their commit and releases the units of failed ones. It
// has a deadline and returns no error: the reconciler and the releaser complete it later.
func (w *Writer) committed(ctx context.Context, goodsID int64, out order.Outcome, began time.Time) {
	if w.Metrics != nil {
		w.Metrics.Wrote(out, time.Since(began))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), order.RedisDeadline)
	defer cancel()
	sns := out.Created
	for sn, status := range out.Existing {
		if status.Active() { // a stock move returns others' units
			sns = append(sns, sn)
		}
	}
	ctx, end := order.StartSpan(ctx, w.Tracer, "settle in Redis")
	_, err := w.Redis.Settle(ctx, goodsID, sns)
	end(err)
	if err != nil {
		w.Log.WarnContext(ctx, "cannot settle orders, the reconciler will",
			"goods_id", goodsID, "orders", len(sns), "err", err)
	}
	w.Releaser.Release(ctx, out.Moves)
}
