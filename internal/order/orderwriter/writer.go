package orderwriter

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/workers"
)

// Metrics hears of what is written, transaction by transaction.
type Metrics interface {
	// Wrote hears of one transaction that committed, and of the time since it was first tried.
	Wrote(out order.Outcome, took time.Duration)
	// Retried hears of one transaction that did not, and is tried again.
	Retried(cause RetryCause)
	// Buried hears of a message that was kept as a dead letter and has no order.
	DeadLettered(reason order.FailureReason)
}

// RetryCause says in a stable word why a transaction is tried again.
type RetryCause string

// The causes.
const (
	RetrySwap     RetryCause = "cas"      // the compare-and-swap on the stock missed
	RetryAdopt    RetryCause = "adopt"    // its orders are of an older epoch and had to be taken in first
	RetryDatabase RetryCause = "database" // anything of the database's: away, a deadlock, a timeout
)

// BatchStore is MySQL as the writer needs it.
type BatchStore interface {
	// WriteBatch writes lines of one goods in one transaction. It returns ErrTryAgain for the infrastructure's trouble,
	// *AdoptError for lines of an older epoch, seckill.ErrNoSuchGoods, or what is wrong with some line.
	WriteBatch(ctx context.Context, b Batch) (order.Outcome, error)
	// WriteFailed writes one order as failed with its dead letter; an order that has a row already is left alone.
	WriteFailed(ctx context.Context, goodsID int64, l reservation.OrderLine, epoch int64, reason order.FailureReason, d order.DeadLetter, now time.Time) (order.Outcome, error)
	// AddDeadLetter keeps a message that has no order to fail.
	AddDeadLetter(ctx context.Context, d order.DeadLetter) error
	RecordBarrier(ctx context.Context, goodsID int64, b order.Barrier, now time.Time) error
}

// Settler is Redis as the writer needs it.
type Settler interface {
	Settle(ctx context.Context, goodsID int64, sns []string) (int, error)
	// Adopt takes units of the present epoch for orders of an older one, and tells which got them; none that would have
	// its buyer hold more than limit (0: any).
	Adopt(ctx context.Context, goodsID, epoch, limit int64, lines []reservation.OrderLine) (map[string]bool, error)
}

// Writer writes batches of received messages: sorts them by goods, has each goods' lines committed in one transaction,
// tells Redis. Trouble of the infrastructure is waited out here, however long; trouble of one order makes a dead letter
// of that order alone.
type Writer struct {
	store    BatchStore
	redis    Settler
	releaser *inventory.StockReleaser
	minter   *ordersn.Minter
	timeout  time.Duration // until an unpaid order expires
	now      func() time.Time
	log      *slog.Logger

	observer Metrics
	tracer   order.Tracer
}

// NewWriter makes a writer. paymentTimeout is how long an order may stay unpaid.
func NewWriter(
	store BatchStore, redis Settler, giver *inventory.StockReleaser, minter *ordersn.Minter, observer Metrics, tracer order.Tracer,
	paymentTimeout time.Duration, log *slog.Logger,
) *Writer {
	return &Writer{
		store: store, redis: redis, releaser: giver, minter: minter, timeout: paymentTimeout, now: time.Now, log: log,
		observer: observer, tracer: tracer,
	}
}

// Write brings a batch of deliveries into MySQL. It returns an error only where ctx ended first: then nothing may be
// acknowledged.
func (w *Writer) Write(ctx context.Context, batch []received) error {
	work := w.sort(batch)
	for _, d := range work.dead {
		if err := w.retry(ctx, "keep a dead letter", func() error { return w.store.AddDeadLetter(ctx, d) }); err != nil {
			return err
		}
		if w.observer != nil {
			w.observer.DeadLettered(d.Reason)
		}
	}
	for _, goods := range work.goods {
		if err := w.writeLines(ctx, goods, work.lines[goods]); err != nil {
			return err
		}
	}
	for _, b := range work.barriers {
		record := func() error { return w.store.RecordBarrier(ctx, b.goodsID, b.Barrier, w.now()) }
		if err := w.retry(ctx, "record a barrier", record); err != nil {
			return err
		}
	}
	return nil
}

// writeLines commits lines of one goods, all of them together if that can be.
func (w *Writer) writeLines(ctx context.Context, goodsID int64, lines []sourcedLine) error {
	began := time.Now()
	out, lost, err := w.commit(ctx, goodsID, lines)
	switch {
	case err == nil:
		if w.observer != nil {
			w.observer.Wrote(out, time.Since(began))
		}
		w.settle(ctx, goodsID, out)
		return w.fail(ctx, goodsID, lost, order.FailedLost)
	case ctx.Err() != nil:
		return err
	case errors.Is(err, seckill.ErrNoSuchGoods):
		return w.fail(ctx, goodsID, lines, order.FailedNoSale)
	case len(lines) == 1:
		w.log.ErrorContext(ctx, "order can't be written", "goods_id", goodsID, "order_sn", lines[0].OrderSn, "err", err)
		return w.fail(ctx, goodsID, lines, order.FailedUnwritten)
	}
	// Something is wrong with one of them: halve until it is alone, so that its mates are written.
	half := len(lines) / 2
	if err := w.writeLines(ctx, goodsID, lines[:half]); err != nil {
		return err
	}
	return w.writeLines(ctx, goodsID, lines[half:])
}

// commit tries transactions until one commits or the lines themselves are at fault. It also returns the lines of older
// epochs for which nothing was left any more; they are not written.
func (w *Writer) commit(ctx context.Context, goodsID int64, lines []sourcedLine) (out order.Outcome, lost []sourcedLine, err error) {
	ctx, end := order.StartSpan(ctx, w.tracer, "commit in MySQL")
	defer func() { end(err) }()
	var adopted map[string]bool
	var epoch int64
	err = w.retry(ctx, "write orders", func() error {
		b := w.batch(goodsID, lines, adopted, epoch)
		var err error
		out, err = w.store.WriteBatch(ctx, b)
		late, ok := errors.AsType[*AdoptError](err)
		if !ok {
			return err
		}
		adopted, epoch, err = w.adopt(ctx, b, late)
		lines, lost = dropLost(lines, lost, adopted)
		return err
	})
	return out, lost, err
}

func (w *Writer) batch(goodsID int64, lines []sourcedLine, adopted map[string]bool, epoch int64) Batch {
	now := w.now()
	b := Batch{
		GoodsID: goodsID, Lines: make([]reservation.OrderLine, len(lines)), Epochs: make(map[string]int64, len(lines)),
		Deliveries: make(map[string]order.DeliveryInfo, len(lines)), Adopted: adopted, Epoch: epoch, Now: now, PayBy: now.Add(w.timeout),
	}
	for i, l := range lines {
		b.Lines[i], b.Epochs[l.OrderSn] = l.OrderLine, l.epoch
		if _, repeated := b.Deliveries[l.OrderSn]; !repeated {
			b.Deliveries[l.OrderSn] = l.delivery
		}
	}
	return b
}

// tell brings what was committed to Redis. It is bounded and its errors are not the caller's: the orders are written,
// and what Redis does not hear now the reconciler tells it.
func (w *Writer) settle(ctx context.Context, goodsID int64, out order.Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), order.RedisDeadline)
	defer cancel()
	sns := out.Created
	for sn, status := range out.Existing {
		if status != order.Failed { // what failed gives its units back by its move
			sns = append(sns, sn)
		}
	}
	ctx, end := order.StartSpan(ctx, w.tracer, "settle in Redis")
	_, err := w.redis.Settle(ctx, goodsID, sns)
	end(err)
	if err != nil {
		w.log.WarnContext(ctx, "not settled, the reconciler will", "goods_id", goodsID, "orders", len(sns), "err", err)
	}
	w.releaser.Release(ctx, out.Moves)
}

// retry calls try until it succeeds, fails for good, or ctx ends. Only ErrTryAgain is tried again.
func (w *Writer) retry(ctx context.Context, what string, try func() error) error {
	pause := workers.RetryBackoff()
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || !errors.Is(err, order.ErrTryAgain) {
			return err
		}
		if w.observer != nil {
			w.observer.Retried(causeOf(err))
		}
		if attempt%10 == 0 {
			w.log.WarnContext(ctx, "database still refuses, trying on", "what", what, "attempt", attempt, "err", err)
		}
		if attempt > 1 {
			workers.Sleep(ctx, pause.NextBackOff())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// causeOf sorts what is tried again.
func causeOf(err error) RetryCause {
	switch {
	case errors.Is(err, order.ErrSwapMissed):
		return RetrySwap
	case errors.Is(err, errAdopted):
		return RetryAdopt
	default:
		return RetryDatabase
	}
}
