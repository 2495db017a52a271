package orderwriter

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/workers"
)

// RetryCause is a stable word for the reason of a retry.
type RetryCause string

// The causes of retries.
const (
	RetrySwap     RetryCause = "cas"      // the compare-and-swap on the stock missed
	RetryAdopt    RetryCause = "adopt"    // orders of an older epoch had to be adopted first
	RetryDatabase RetryCause = "database" // any other: no connection, a deadlock, a timeout
)

// logAfter is the time of failures before a log line, and between two. A single retry is normal,
// and an attempt that waits for a lock takes seconds.
const logAfter = 5 * time.Second

// retry calls try until it succeeds, fails for good, or ctx ends. It repeats only ErrTryAgain. The
// second attempt follows at once, because most conflicts and adoptions are over by then. The log
// names the sale: a lock or a trigger may stop one alone, and the others of its queue wait for it.
func (w *Writer) retry(
	ctx context.Context, operation string, goodsID int64, try func() error,
) error {
	pause, logged := workers.RetryBackoff(), time.Now()
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || !errors.Is(err, order.ErrTryAgain) {
			return err
		}
		if w.Metrics != nil {
			w.Metrics.Retried(causeOf(err))
		}
		if time.Since(logged) >= logAfter {
			logged = time.Now()
			w.Log.WarnContext(ctx, "the database still fails, retrying",
				"operation", operation, "goods_id", goodsID, "attempt", attempt, "err", err)
		}
		if attempt > 1 {
			workers.Sleep(ctx, pause.NextBackOff())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// causeOf finds the cause for the metrics.
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
