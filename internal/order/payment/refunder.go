package payment

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/workers"
)

// Refunder refunds payments that their orders could not keep. It retries until the provider
// accepts, and stops RefundPeriod after the first attempt. Any number of refunders may run, because
// one of them claims each attempt. After a crash between refund and mark another refunder repeats
// the call, and the provider refunds nothing more.
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
		workers.Warn(ctx, r.Log, "cannot read due refunds, retrying", err)
		return
	}
	workers.Each(ctx, due, func(ctx context.Context, refund Refund) {
		r.try(context.WithoutCancel(ctx), refund)
	})
}

// try makes one attempt, which the end of the worker does not interrupt. The record of its outcome
// has time of its own, also after a provider that did not answer.
func (r *Refunder) try(ctx context.Context, refund Refund) {
	call, cancel := context.WithTimeout(ctx, providerDeadline)
	defer cancel()
	claimed := false
	now, err := r.Store.Now(call)
	if err == nil {
		claimed, err = r.Store.ClaimRefund(call, refund, now)
	}
	if err == nil && !claimed {
		return
	}
	attrs := []any{
		"payment_id", refund.ID, "order_sn", refund.OrderSn,
		"reason", refund.Reason, "attempts", refund.Attempts + 1,
	}
	if err == nil {
		var failure error
		if refund.Amount > 0 { // the provider has no payment of an order that costs nothing
			failure = r.Provider.Refund(call, refund.Payment)
		}
		err = r.record(ctx, refund.Payment, now, failure)
	}
	switch {
	case err == nil:
		r.Log.InfoContext(ctx, "the provider has taken the refund", attrs...)
	case claimed && refund.NextRefund(now).IsZero():
		r.Log.ErrorContext(ctx, "cannot refund a payment, gave up", append(attrs, "err", err)...)
	default:
		r.Log.WarnContext(ctx, "cannot refund a payment, retrying", append(attrs, "err", err)...)
	}
}

// record stores the outcome of the attempt claimed at a moment. It returns the error of the call to
// the provider, too.
func (r *Refunder) record(ctx context.Context, p Payment, claimed time.Time, failure error) error {
	ctx, cancel := context.WithTimeout(ctx, recordDeadline)
	defer cancel()
	if failure != nil {
		return errors.Join(failure, r.Store.RecordRefundProblem(ctx, p, claimed, failure.Error()))
	}
	return r.Store.MarkRefunded(ctx, p, claimed)
}

const (
	refundEvery = time.Second
	refundChunk = 50
)
