package payment

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// Payment is money that a provider took for an order.
type Payment struct {
	ID      string // the provider's number of it: 1 to MaxPaymentID of [0-9A-Za-z._-]
	GoodsID int64
	OrderSn string
	Amount  int64 // in the currency's smallest unit
}

// MaxPaymentID is how many characters a provider's number of a payment has at most.
const MaxPaymentID = 64

// Provider takes buyers' money and gives it back.
type Provider interface {
	// Charge takes the amount of a created order. Asked again for the same order it takes nothing more and gives the same
	// payment. An error means that the outcome is unknown: a provider that took the money says so by a callback.
	Charge(ctx context.Context, o order.Order) (Payment, error)
	// Refund gives a payment back, all of it. Asked again it gives nothing more; nil means that it was given.
	Refund(ctx context.Context, p Payment) error
}

// State is what becomes of a payment: kept, or refunding and then refunded, and never both.
type State string

// The states of a payment.
const (
	Kept      State = "kept"      // final; its order is paid
	Refunding State = "refunding" // to be given back, tried until it is
	Refunded  State = "refunded"  // final
)

// RefundReason says in a stable word why a payment is given back.
type RefundReason string

// The reasons of a refund.
const (
	RefundLate      RefundReason = "EXPIRED"   // the time to pay was over
	RefundCancelled RefundReason = "CANCELLED" // the buyer had cancelled the order
	RefundFailed    RefundReason = "FAILED"    // the order could not be written
	RefundSecond    RefundReason = "PAID"      // another payment had paid the order
)

// Receipt is what has become of a payment, and of its order.
type Receipt struct {
	Payment
	State  State
	Reason RefundReason // of one that is not kept
	Order  order.Order
}

// RefundReasonFor tells what becomes of a payment for an order at a moment: it is kept ("") by a created order whose time to pay is
// not over, and given back by any other.
func RefundReasonFor(o order.Order, now time.Time) RefundReason {
	switch {
	case o.Status == order.Created && now.Before(o.PayBy):
		return ""
	case o.Status == order.Created || o.Status == order.Expired:
		return RefundLate
	case o.Status == order.Cancelled:
		return RefundCancelled
	case o.Status == order.Paid:
		return RefundSecond
	default:
		return RefundFailed
	}
}

// Refund is a payment that is to be given back.
type Refund struct {
	Payment
	Reason   RefundReason
	Attempts int // how often it was tried
}
