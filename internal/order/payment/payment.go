package payment

import (
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/workers"
)

// Payment is money that a provider charged for an order.
type Payment struct {
	ID      string // the provider's id: 1 to MaxPaymentID of [0-9A-Za-z._-]
	GoodsID int64
	OrderSn string
	Amount  int64 // in the currency's smallest unit
	// Currency is the ISO 4217 code of a payment that is not in its order's currency; otherwise "".
	Currency string
}

// MaxPaymentID is the greatest length of a payment id, in characters.
const MaxPaymentID = 64

// State is the state of a payment. A kept payment is never refunded.
type State string

// The states of a payment.
const (
	Kept      State = "kept"      // final; its order is paid
	Refunding State = "refunding" // to be refunded; the refunder retries until it is
	Refunded  State = "refunded"  // final, unless the provider reports that the refund failed
)

// RefundReason is the stable code for the cause of a refund.
type RefundReason string

// The reasons of a refund.
const (
	RefundLate       RefundReason = "EXPIRED"   // the time to pay was over
	RefundCancelled  RefundReason = "CANCELLED" // the buyer had cancelled the order
	RefundFailed     RefundReason = "FAILED"    // the order could not be written
	RefundSecond     RefundReason = "PAID"      // another payment had paid the order
	RefundAmount     RefundReason = "AMOUNT"    // the amount was not the order's
	RefundByMerchant RefundReason = "MERCHANT"  // the merchant or an operator returned it
	RefundCurrency   RefundReason = "CURRENCY"  // the currency was not the order's
	RefundDispute    RefundReason = "DISPUTE"   // the buyer's bank returned it: a lost dispute
)

// Receipt is the outcome of a payment and the state of its order.
type Receipt struct {
	Payment
	State  State
	Reason RefundReason // of one that is not kept
	Order  order.Order
	// Err is Conflict if the id belongs to another payment or no money was charged for an order
	// that costs some, or ErrNoSuchOrder. Any other error is of invalid data. Nothing is recorded
	// then.
	Err error
}

// RefundReasonOf returns the reason for which an order can't keep a payment at a moment, or "" if
// it can. Only a created order before PayBy keeps a payment, and only of its own amount and
// currency.
func RefundReasonOf(o order.Order, p Payment, now time.Time) RefundReason {
	reason := RefundReasonFor(o, now)
	switch {
	case reason != "":
		return reason
	case p.Currency != "":
		return RefundCurrency
	case p.Amount != o.Amount:
		return RefundAmount
	}
	return ""
}

// RefundReasonFor is RefundReasonOf for a payment of the order's amount and currency.
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

// Refund is a payment to refund.
type Refund struct {
	Payment
	Reason   RefundReason
	Attempts int       // attempts so far
	Since    time.Time // of the first attempt; zero before it
	TriedAt  time.Time // of the last attempt, or of the report that it failed; zero before it
	NextAt   time.Time // of the next attempt; zero once the refunder has stopped
	Problem  string    // why the last attempt failed
}

// Stopped reports whether the refunder has given up. An operator decides what happens next.
func (r Refund) Stopped() bool { return r.NextAt.IsZero() }

// RefundPeriod is how long after the first attempt the refunder stops. A provider that was down is
// back by then, and what is refused for days is refused for ever.
const RefundPeriod = 3 * 24 * time.Hour

const (
	providerDeadline = 10 * time.Second // of one attempt: its claim and its calls to the provider
	recordDeadline   = 2 * time.Second  // of the record of its outcome
	attemptTime      = providerDeadline + recordDeadline
	// refundPause is the pause after the first failed attempt. It doubles up to refundPauseMax.
	// LongPause may shorten it by a fifth. That is still attemptTime, so that no other refunder
	// repeats an attempt in progress.
	refundPause    = 15 * time.Second
	refundPauseMax = time.Hour
)

// NextRefund returns the time of the attempt after the one at now, or the zero time if that one is
// the last.
func (r Refund) NextRefund(now time.Time) time.Time {
	if !r.Since.IsZero() && now.Sub(r.Since) >= RefundPeriod {
		return time.Time{}
	}
	return now.Add(workers.LongPause(refundPause, refundPauseMax, r.Attempts))
}

// InProgress reports whether an attempt may be in progress at now, or its result on its way to the
// database. If the last one is later than now, the database's clock was set back since. The
// refunder then tries again at once, unless it has stopped.
func (r Refund) InProgress(now time.Time) bool {
	since := now.Sub(r.TriedAt)
	return since < attemptTime && (since > -attemptTime || !r.Stopped())
}
