package payment

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/workers"
)

// RefundStore is MySQL as giving back needs it.
type RefundStore interface {
	// DueRefunds lists payments that are to be given back now, the longest due first.
	DueRefunds(ctx context.Context, now time.Time, limit int) ([]Refund, error)
	// ClaimRefund puts the next try off until a moment, and tells whether this try is the caller's: of several who saw the
	// same refund one has it.
	ClaimRefund(ctx context.Context, r Refund, next time.Time) (bool, error)
	// MarkRefunded keeps that a payment was given back. It may be repeated; the first time counts.
	MarkRefunded(ctx context.Context, p Payment, now time.Time) error
}

// Refunder gives back payments that could not be kept, each until the provider has given it. Any number of them may run:
// a try is one refunder's, and where that one dies between the provider's yes and the mark, the next asks again, which
// the provider answers with the same refund.
type Refunder struct {
	store    RefundStore
	provider Provider
	now      func() time.Time
	log      *slog.Logger
}

// NewRefunder makes a refunder.
func NewRefunder(store RefundStore, provider Provider, log *slog.Logger) *Refunder {
	return &Refunder{store: store, provider: provider, now: time.Now, log: log}
}

// Run gives back until ctx ends.
func (r *Refunder) Run(ctx context.Context) error {
	return workers.Every(ctx, refundEvery, r.runOnce)
}

func (r *Refunder) runOnce(ctx context.Context) {
	due, err := r.store.DueRefunds(ctx, r.now(), refundChunk)
	if err != nil {
		if ctx.Err() == nil {
			r.log.WarnContext(ctx, "can't look for refunds, trying again", "err", err)
		}
		return
	}
	for _, refund := range due {
		if ctx.Err() != nil {
			return
		}
		r.try(context.WithoutCancel(ctx), refund)
	}
}

// try makes one try, which is finished once it is begun.
func (r *Refunder) try(ctx context.Context, refund Refund) {
	ctx, cancel := context.WithTimeout(ctx, refundDeadline)
	defer cancel()
	mine, err := r.store.ClaimRefund(ctx, refund, r.now().Add(pauseAfter(refund.Attempts)))
	if err == nil && !mine {
		return
	}
	if err == nil {
		err = r.provider.Refund(ctx, refund.Payment)
	}
	if err == nil {
		err = r.store.MarkRefunded(ctx, refund.Payment, r.now())
	}
	attrs := []any{"payment_id", refund.ID, "order_sn", refund.OrderSn, "reason", refund.Reason, "attempts", refund.Attempts + 1}
	if err != nil {
		r.log.WarnContext(ctx, "payment not given back yet, trying again", append(attrs, "err", err)...)
		return
	}
	r.log.InfoContext(ctx, "payment given back", attrs...)
}

const (
	refundEvery    = time.Second
	refundChunk    = 50
	refundDeadline = 10 * time.Second // of one call to the provider
	// refundPause is the wait after the first failed try, doubled after each until refundPauseMax. It is longer than a call
	// may take: a refund that is under way is not tried by another.
	refundPause    = 15 * time.Second
	refundPauseMax = 10 * time.Minute
)

func pauseAfter(attempts int) time.Duration {
	return min(refundPause<<min(attempts, 10), refundPauseMax)
}
