package order

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
)

// BatchStore is MySQL as the writer needs it.
type BatchStore interface {
	// WriteBatch writes lines of one goods in one transaction. It returns ErrTryAgain for the infrastructure's trouble,
	// *AdoptError for lines of an older epoch, seckill.ErrNoSuchGoods, or what is wrong with some line.
	WriteBatch(ctx context.Context, b Batch) (Outcome, error)
	// WriteFailed writes one order as failed with its dead letter; an order that has a row already is left alone.
	WriteFailed(ctx context.Context, goodsID int64, l seckill.Line, epoch int64, reason FailureReason, d DeadLetter, now time.Time) (Outcome, error)
	// AddDeadLetter keeps a message that has no order to fail.
	AddDeadLetter(ctx context.Context, d DeadLetter) error
	RecordBarrier(ctx context.Context, goodsID int64, b Barrier, now time.Time) error
}

// Settler is Redis as the writer needs it.
type Settler interface {
	Settle(ctx context.Context, goodsID int64, sns []string) (int, error)
	// Adopt takes units of the present epoch for orders of an older one, and tells which got them; none that would have
	// its buyer hold more than limit (0: any).
	Adopt(ctx context.Context, goodsID, epoch, limit int64, lines []seckill.Line) (map[string]bool, error)
}

// Writer writes batches of received messages: sorts them by goods, has each goods' lines committed in one transaction,
// tells Redis. Trouble of the infrastructure is waited out here, however long; trouble of one order makes a dead letter
// of that order alone.
type Writer struct {
	store   BatchStore
	redis   Settler
	giver   *Giver
	minter  *ordersn.Minter
	timeout time.Duration // until an unpaid order expires
	now     func() time.Time
	log     *slog.Logger

	observer WriterObserver
	tracer   Tracer
}

// NewWriter makes a writer. paymentTimeout is how long an order may stay unpaid.
func NewWriter(store BatchStore, redis Settler, giver *Giver, minter *ordersn.Minter, paymentTimeout time.Duration, log *slog.Logger) *Writer {
	return &Writer{
		store: store, redis: redis, giver: giver, minter: minter, timeout: paymentTimeout, now: time.Now, log: log,
		observer: unobserved{}, tracer: untraced{},
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
		w.observer.Buried(d.Reason)
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
func (w *Writer) writeLines(ctx context.Context, goodsID int64, lines []sourced) error {
	began := time.Now()
	out, lost, err := w.commit(ctx, goodsID, lines)
	switch {
	case err == nil:
		w.observer.Wrote(out, time.Since(began))
		w.tell(ctx, goodsID, out)
		return w.fail(ctx, goodsID, lost, FailedLost)
	case ctx.Err() != nil:
		return err
	case errors.Is(err, seckill.ErrNoSuchGoods):
		return w.fail(ctx, goodsID, lines, FailedNoSale)
	case len(lines) == 1:
		w.log.ErrorContext(ctx, "order can't be written", "goods_id", goodsID, "order_sn", lines[0].OrderSn, "err", err)
		return w.fail(ctx, goodsID, lines, FailedUnwritten)
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
func (w *Writer) commit(ctx context.Context, goodsID int64, lines []sourced) (out Outcome, lost []sourced, err error) {
	ctx, end := w.tracer.Begin(ctx, "commit in MySQL")
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

func (w *Writer) batch(goodsID int64, lines []sourced, adopted map[string]bool, epoch int64) Batch {
	now := w.now()
	b := Batch{
		GoodsID: goodsID, Lines: make([]seckill.Line, len(lines)), Epochs: make(map[string]int64, len(lines)),
		Deliveries: make(map[string]DeliveryInfo, len(lines)), Adopted: adopted, Epoch: epoch, Now: now, PayBy: now.Add(w.timeout),
	}
	for i, l := range lines {
		b.Lines[i], b.Epochs[l.OrderSn] = l.Line, l.epoch
		if _, repeated := b.Deliveries[l.OrderSn]; !repeated {
			b.Deliveries[l.OrderSn] = l.delivery
		}
	}
	return b
}

// tell brings what was committed to Redis. It is bounded and its errors are not the caller's: the orders are written,
// and what Redis does not hear now the reconciler tells it.
func (w *Writer) tell(ctx context.Context, goodsID int64, out Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisDeadline)
	defer cancel()
	sns := out.Created
	for sn, status := range out.Existing {
		if status != Failed { // what failed gives its units back by its move
			sns = append(sns, sn)
		}
	}
	ctx, end := w.tracer.Begin(ctx, "settle in Redis")
	_, err := w.redis.Settle(ctx, goodsID, sns)
	end(err)
	if err != nil {
		w.log.WarnContext(ctx, "not settled, the reconciler will", "goods_id", goodsID, "orders", len(sns), "err", err)
	}
	w.giver.Give(ctx, out.Moves)
}

// retry calls try until it succeeds, fails for good, or ctx ends. Only ErrTryAgain is tried again.
func (w *Writer) retry(ctx context.Context, what string, try func() error) error {
	pause := retryPause()
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || !errors.Is(err, ErrTryAgain) {
			return err
		}
		w.observer.Retried(causeOf(err))
		if attempt%10 == 0 {
			w.log.WarnContext(ctx, "database still refuses, trying on", "what", what, "attempt", attempt, "err", err)
		}
		if attempt > 1 {
			sleep(ctx, pause.NextBackOff())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// causeOf sorts what is tried again.
func causeOf(err error) RetryCause {
	switch {
	case errors.Is(err, ErrSwapMissed):
		return RetrySwap
	case errors.Is(err, errAdopted):
		return RetryAdopt
	default:
		return RetryDatabase
	}
}
