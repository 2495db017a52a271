package payment

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/workers"
)

// Refunder refunds payments that their orders could not keep, and retries until the provider
// accepts. Any number of refunders may run, because one of them claims each attempt. After a crash
// between refund and mark another refunder repeats the call, and the provider refunds nothing more.
type Refunder struct {
	Store    Store
	Provider Provider
	Log      *slog.Logger
}

// Run refunds until ctx ends.
func (r *Refunder) Run(ctx context.Context) error {
	return workers.Every(ctx, refundEvery, r.runOnce)
}

func (r *Refunder) runOnce(ctx context.Context) {
	now, err := r.Store.Now(ctx)
	var due []Refund
	if err == nil {
		due, err = r.Store.DueRefunds(ctx, now, refundChunk)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.Log.WarnContext(ctx, "can't read due refunds, will retry", "err", err)
		}
		return
	}
	workers.Each(ctx, due, func(ctx context.Context, refund Refund) {
		r.try(context.WithoutCancel(ctx), refund)
	})
}

// try makes one attempt, which the end of the worker does not interrupt.
func (r *Refunder) try(ctx context.Context, refund Refund) {
	ctx, cancel := context.WithTimeout(ctx, refundDeadline)
	defer cancel()
	claimed := false
	now, err := r.Store.Now(ctx)
	if err == nil {
		claimed, err = r.Store.ClaimRefund(ctx, refund, now.Add(pauseAfter(refund.Attempts)))
	}
	if err == nil && !claimed {
		return
	}
	if err == nil {
		err = r.Provider.Refund(ctx, refund.Payment)
	}
	if err == nil {
		err = r.Store.MarkRefunded(ctx, refund.Payment, now)
	}
	attrs := []any{
		"payment_id", refund.ID, "order_sn", refund.OrderSn,
		"reason", refund.Reason, "attempts", refund.Attempts + 1,
	}
	if err != nil {
		r.Log.WarnContext(ctx, "payment not refunded, will retry", append(attrs, "err", err)...)
		return
	}
	r.Log.InfoContext(ctx, "payment refunded", attrs...)
}

const (
	refundEvery    = time.Second
	refundChunk    = 50
	refundDeadline = 10 * time.Second // of one call to the provider
	// refundPause is the pause after the first failed attempt. It doubles up to refundPauseMax. It
	// exceeds refundDeadline, so that no other refunder repeats an attempt in progress.
	refundPause    = 15 * time.Second
	refundPauseMax = 10 * time.Minute
)

// pauseAfter is the pause after so many failed attempts.
func pauseAfter(attempts int) time.Duration {
	return min(refundPause<<min(attempts, 10), refundPauseMax)
}
