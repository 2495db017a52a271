package httpapi

import (
	"context"
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// The interfaces below are what the handlers call. An error with a reason for the caller is a
// *seckill.Error. Every other error is logged and answered as INTERNAL.

// Sales manages the sales of merchants; *inventory.SaleService implements it. An unknown sale is
// NOT_FOUND, and a sale of another merchant is FORBIDDEN. A repeated idempotency key returns the
// first result.
type Sales interface {
	// Create stores a draft of the actor; BAD_REQUEST names the first invalid field.
	Create(
		ctx context.Context, by seckill.Actor, n seckill.NewSale, key salechange.IdempotencyKey,
	) (seckill.Sale, error)
	// Get returns one sale, drafts included.
	Get(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
	// List returns the actor's own sales, or all for an operator, newest first. It returns at most
	// limit of those with a goods id below the given one (0 starts at the newest).
	List(ctx context.Context, by seckill.Actor, below int64, limit int) ([]seckill.Sale, error)
	// Change applies a change completely or not at all. CONFLICT where the sale's status does not
	// allow it, or where a cut exceeds the available units.
	Change(
		ctx context.Context, by seckill.Actor, goodsID int64, c salechange.Change,
		key salechange.IdempotencyKey,
	) (seckill.Sale, error)
	// Delete removes a draft; any other sale is a CONFLICT.
	Delete(
		ctx context.Context, by seckill.Actor, goodsID int64, key salechange.IdempotencyKey,
	) error
	// Expose loads a draft into Redis and shows it to buyers. A sale that is over is a CONFLICT.
	Expose(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
	// Close ends a sale for good; a draft is a CONFLICT.
	Close(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
	// Ledger accounts for every unit of a sale; UNAVAILABLE during a rebuild.
	Ledger(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Ledger, error)
	// Audit returns the changes of a sale, newest first: at most limit of those before the given id
	// ("" starts at the newest).
	Audit(
		ctx context.Context, by seckill.Actor, goodsID int64, before string, limit int,
	) ([]salechange.AuditEntry, error)
}

// SaleReader reads sales for buyers and admits buyers to them; *catalog.Catalog implements it.
type SaleReader interface {
	// Sales returns exposed sales, newest first: at most limit of those with a goods id below the
	// given one (0 starts at the newest).
	Sales(ctx context.Context, below int64, limit int) ([]seckill.View, error)
	// Sale returns one sale; NOT_FOUND for an unknown one and for a draft.
	Sale(ctx context.Context, goodsID int64) (seckill.View, error)
	// KnownError returns the error that Admit would return without a call to Redis, or nil where
	// Admit has to call it.
	KnownError(goodsID int64) error
	// Admit returns the view of a sale that takes buyers now, else its error: NOT_FOUND,
	// NOT_STARTED, ENDED, SOLD_OUT or UNAVAILABLE.
	Admit(ctx context.Context, goodsID int64) (seckill.View, error)
	// IssuePath returns a random path for one buyer and the time at which it expires.
	IssuePath(
		ctx context.Context, v seckill.View, buyerID int64,
	) (path string, expiresAt time.Time, err error)
}

// PurchaseService takes purchases.
type PurchaseService interface {
	// Place returns the order number once the order is queued. The same path returns the same
	// number.
	Place(ctx context.Context, p purchase.Request) (orderSn string, err error)
}

// OrderQuery reads orders. Lists are newest first: at most limit of the orders with a number below
// the given one ("" starts at the newest).
type OrderQuery interface {
	// Find returns the actor's own order; NOT_FOUND for an unknown number, and FORBIDDEN for
	// another buyer's order.
	Find(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)
	// Mine returns the actor's own orders.
	Mine(ctx context.Context, by seckill.Actor, before string, limit int) ([]order.Order, error)
	// OfGoods returns a sale's orders to an actor who manages the sale; the status "" means all.
	OfGoods(
		ctx context.Context, by seckill.Actor, goodsID int64, status order.Status,
		before string, limit int,
	) ([]order.Order, error)
}

// PaymentService pays and cancels orders. Each method is idempotent.
type PaymentService interface {
	// Pay charges the buyer and returns the paid order; CONFLICT where its status or its deadline
	// does not allow it.
	Pay(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)
	// Cancel cancels a created order and returns its units to the sale.
	Cancel(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)
	// Receive records a payment that the payment provider reports.
	Receive(ctx context.Context, paymentID, orderSn string, amount int64) (payment.Receipt, error)
}

// Health reports whether this node should receive requests, and the state of each dependency.
type Health interface {
	// Ready returns the state of each part by name: "ok", or its problem.
	Ready(ctx context.Context) (ready bool, parts map[string]string)
}

// Metrics records every response.
type Metrics interface {
	// Route returns the function that records the responses of one route: the reason and the
	// duration. The route is a pattern, or "other" for unknown paths. New calls it once per route,
	// so that recording needs no lookup.
	Route(pattern string) func(reason string, took time.Duration)
}

// Tracer traces a sample of the requests.
type Tracer interface {
	// Request starts a trace where the request is sampled. The handler runs with the returned
	// context; end receives the response's status and reason.
	Request(
		ctx context.Context, r *http.Request, route string,
	) (traced context.Context, end func(status int, reason string))
}
