package payment

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// Store records payments, cancellations, expiries and refunds in MySQL.
type Store interface {
	order.Clock
	// Receive records payments of one sale. A refusal of one, in its receipt's Err, does not affect
	// the others. Receive makes each order paid, or marks the payment for a refund if the order
	// can't keep it. The same payment again returns the recorded outcome. It returns one receipt
	// for each payment, in the same order.
	Receive(
		ctx context.Context, goodsID int64, payments []Payment, now time.Time,
	) ([]Receipt, error)
	// Cancel cancels created orders of one sale in one transaction. It returns one outcome for each
	// number, in the same order.
	Cancel(
		ctx context.Context, goodsID int64, orderSns []string, now time.Time,
	) ([]Cancellation, error)
	// ExpireDue expires at most limit unpaid orders of a sale that are due, in one transaction.
	ExpireDue(
		ctx context.Context, goodsID int64, now time.Time, limit int,
	) ([]order.StockMove, error)
	// DueRefunds lists payments whose refund is due, the longest due first.
	DueRefunds(ctx context.Context, now time.Time, limit int) ([]Refund, error)
	// ClaimRefund sets the time of the next attempt and returns whether the caller may make this
	// attempt. Of several callers with the same refund one gets true.
	ClaimRefund(ctx context.Context, r Refund, next time.Time) (bool, error)
	// MarkRefunded records that a payment was refunded. A repeated call changes nothing.
	MarkRefunded(ctx context.Context, p Payment, now time.Time) error
}
