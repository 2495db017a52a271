package payment

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// Provider returns money to buyers. A provider also implements either Charger or Pages, which take
// the money.
type Provider interface {
	// Refund returns what is left of a payment. A repeated call returns nothing more. nil means
	// that the provider has accepted the refund.
	Refund(ctx context.Context, p Payment) error
}

// Charger is a provider that charges a buyer without asking.
type Charger interface {
	// Charge charges the amount of a created order. A repeated call for the order charges nothing
	// more and returns the same payment. A Conflict means that nothing was charged, as for a card
	// that is declined; the buyer reads its message. After another error the outcome is unknown: a
	// provider that charged the buyer reports it by a callback.
	Charge(ctx context.Context, o order.Order) (Payment, error)
}

// Pages is a provider whose buyers pay on its pages. It reports payments by webhooks, and answers
// questions about those that got lost.
type Pages interface {
	// Open makes the page of a checkout for the order's amount and returns its ID and URL. A
	// repeated call for the same attempt makes nothing new and returns the same. ErrRefused means
	// that the provider made no page that a buyer can know; a Conflict in it, that it never makes
	// one of this amount or currency. After another error the outcome is unknown.
	Open(ctx context.Context, o order.Order, c Checkout) (Checkout, error)
	// Ask returns what became of a checkout with an ID, or ErrNoSuchPage.
	Ask(ctx context.Context, c Checkout) (Answer, error)
	// End makes an open page take no money. It returns an error if the page was paid before.
	End(ctx context.Context, c Checkout) error
}

// ErrNoSuchPage reports that a provider does not know a page, because the key is of another account
// or mode.
var ErrNoSuchPage = errors.New("the payment provider does not know the page")

// ErrRefused reports that a provider made no page that a buyer can know, and took no money.
var ErrRefused = errors.New("the payment provider refuses the page")

// Checkout is an order's page at the provider.
type Checkout struct {
	GoodsID int64
	OrderSn string
	Attempt int       // 1 for the first page; a page that ended unpaid has a successor
	BegunAt time.Time // when this attempt began
	ID      string    // the provider's id; "" until it has answered
	URL     string    // "" until the provider has answered
	// Currency of the sale, ISO 4217; "" is the installation's. Only Open needs it.
	Currency string
	Asked    int // questions about it so far
}

// AnswerState is what became of a page.
type AnswerState int

// The states of a page.
const (
	PageOpen       AnswerState = iota // the buyer can pay
	PageProcessing                    // the buyer has decided; the money is on its way
	PagePaid                          // final, with a payment
	PageEnded                         // final, without a payment
)

// Answer is a provider's answer about a checkout.
type Answer struct {
	State   AnswerState
	Payment Payment // of a page that is paid; its goods and order are the checkout's
}

// Event is a verified message of a provider. The zero Event concerns no order of this service.
type Event struct {
	// Checkout names the page that changed, by GoodsID, OrderSn and ID; nil without a page.
	Checkout *Checkout
	// Payment is money that was taken, on that page if there is one, or nil. Its GoodsID may be 0.
	Payment *Payment
	// Reversal is a refund or a dispute, or nil.
	Reversal *Reversal
	// Returned is the payment of a reversal if refunds and lost disputes return it whole; otherwise
	// nil.
	Returned *Payment
	// Refunds are the IDs of the refunds that return it.
	Refunds []string
}

// ReversalKind is the kind of a reversal.
type ReversalKind string

// The kinds of reversals.
const (
	ReversalRefund  ReversalKind = "refund"  // by this service or by the merchant at the provider
	ReversalDispute ReversalKind = "dispute" // the buyer asked the bank for the money
)

// Reversal is a refund or a dispute of a payment in the state that the provider reports.
type Reversal struct {
	ID        string // the provider's own number, unique among both kinds
	Kind      ReversalKind
	GoodsID   int64
	OrderSn   string
	PaymentID string
	Amount    int64     // in the smallest unit of Currency, as the provider counts it
	Currency  string    // ISO 4217
	State     string    // the provider's own word
	Closed    bool      // the state never changes
	Failed    bool      // a refund that returned no money
	At        time.Time // when it reached the state, by the provider's clock
}
