package payment

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// Store records payments, cancellations, expiries, refunds and pages in MySQL.
type Store interface {
	order.Clock
	CheckoutStore
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
	// CancelForMerchant cancels one order of a status, created or paid, for the context's actor. It
	// marks the payment of a paid one for a refund. A cancelled order is returned as it is; Err is
	// a Conflict for any other status, for a shipped order, and for one to refund that was never
	// paid.
	CancelForMerchant(
		ctx context.Context, goodsID int64, orderSn string, from order.Status, now time.Time,
	) (Cancellation, error)
	// Overdue returns those of the sales that have unpaid orders which are due.
	Overdue(ctx context.Context, goodsIDs []int64, now time.Time) ([]int64, error)
	// ExpireDue expires at most limit unpaid orders of a sale that are due, in one transaction.
	ExpireDue(
		ctx context.Context, goodsID int64, now time.Time, limit int,
	) ([]order.StockMove, error)
	// DueRefunds lists payments whose refund is due, the longest due first. Where more than limit
	// are due, up to half of them are those without an attempt, the last due first.
	DueRefunds(ctx context.Context, now time.Time, limit int) ([]Refund, error)
	// ClaimRefund records an attempt at now and sets the time of the next one. It returns whether
	// the caller may make this attempt. Of several callers with the same refund one gets true.
	ClaimRefund(ctx context.Context, r Refund, now time.Time) (bool, error)
	// RecordRefundProblem records why the attempt claimed at a moment failed. It changes nothing if
	// that is not the last one.
	RecordRefundProblem(ctx context.Context, p Payment, claimed time.Time, problem string) error
	// MarkRefunded records that the attempt claimed at a moment refunded a payment. It changes
	// nothing after a later attempt, or after a report that a refund of the payment failed.
	MarkRefunded(ctx context.Context, p Payment, claimed time.Time) error
	// OpenRefunds lists payments that are not refunded yet, with ids after an id.
	OpenRefunds(ctx context.Context, after string, limit int) ([]Refund, error)
	// OpenRefund returns a payment that is not refunded yet, or one that SettleRefund has settled.
	// Otherwise it returns ErrNoSuchRefund.
	OpenRefund(ctx context.Context, paymentID string) (Refund, error)
	// RetryRefund makes a refund due at now, with a new period, for the context's actor. It returns
	// ErrNoSuchRefund if the payment is not to be refunded.
	RetryRefund(ctx context.Context, paymentID string, now time.Time) (Refund, error)
	// SettleRefund records, for the context's actor, that the money was returned in another way. A
	// settled refund stays as it is. It returns ErrNoSuchRefund as RetryRefund does, and a Conflict
	// while an attempt may be in progress.
	SettleRefund(ctx context.Context, paymentID, note string, now time.Time) (Refund, error)
	// CancelReturned cancels the paid order whose payment was returned at the provider, and records
	// the payment as refunded for a reason. A payment that is to be refunded is refunded then, with
	// its own reason. The order stays as it is, and the Move is nil, in three cases: it is shipped,
	// it does not keep this payment, or one of the refunds is recorded as failed. The error is
	// ErrNoSuchPayment if the payment is not recorded.
	CancelReturned(
		ctx context.Context, p Payment, refunds []string, reason RefundReason, now time.Time,
	) (Cancellation, error)
	// ReversalsOf lists the refunds and disputes of an order, in the order of their ids.
	ReversalsOf(ctx context.Context, goodsID int64, orderSn string) ([]Reversal, error)
}

// Errors of a Store.
var (
	ErrNoSuchPayment = errors.New("the payment is not recorded")
	// ErrNoSuchRefund reports that a payment is unknown or not to be refunded.
	ErrNoSuchRefund = apierror.New(apierror.NotFound, "there is no such refund")
)

// CheckoutStore records the providers' pages, and refunds and disputes that a provider reports.
type CheckoutStore interface {
	// Sale returns the sale of a goods, whose currency its orders have.
	Sale(ctx context.Context, goodsID int64) (seckill.Sale, error)
	// OrdersByNumber returns the orders of a goods that have these numbers.
	OrdersByNumber(ctx context.Context, goodsID int64, orderSns []string) ([]order.Order, error)
	// BeginCheckout returns the open checkout of an order, or begins the next attempt, which the
	// poller asks about at the time ask. It returns a Conflict if the order can't be paid at now.
	BeginCheckout(ctx context.Context, o order.Order, now, ask time.Time) (Checkout, error)
	// SaveCheckout records the ID and the URL of an attempt that has none. The question about it is
	// due at once if the order has ended. SaveCheckout returns an error if the attempt has ended or
	// has another ID.
	SaveCheckout(ctx context.Context, c Checkout) error
	// EndCheckout records that the page with this ID takes no more money. A checkout without an ID
	// ends if the provider has answered none to its Attempt. A repeated call changes nothing.
	EndCheckout(ctx context.Context, c Checkout) error
	// HastenCheckout makes the question about an order's open page due at now.
	HastenCheckout(ctx context.Context, goodsID int64, orderSn string, now time.Time) error
	// DueCheckouts lists open checkouts to ask about. Where more than limit are due, half of them
	// are those that are due for the longest time, and half those for the shortest: questions that
	// come too late anyway delay no question before the end of a time to pay.
	DueCheckouts(ctx context.Context, now time.Time, limit int) ([]Checkout, error)
	// ClaimCheckout sets the time of the next question and returns whether the caller may ask now.
	// Of several callers with the same checkout one gets true.
	ClaimCheckout(ctx context.Context, c Checkout, next time.Time) (bool, error)
	// RecordReversal records the latest state of a refund or a dispute. A repeated or an older
	// state changes nothing, and neither does any state after one that is closed. The first report
	// that a refund failed makes its payment due again, after the pause of a failed attempt. A
	// payment that is kept or settled stays as it is.
	RecordReversal(ctx context.Context, r Reversal, now time.Time) error
}
