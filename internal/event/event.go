package event

import (
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// Type is the kind of a change.
type Type string

// The types of the contract, in the order in which they happen to one order and to one sale.
const (
	SaleExposed    Type = "sale.exposed"
	OrderFailed    Type = "order.failed"
	OrderCreated   Type = "order.created" // also of a failed order that an operator requeued
	SaleSoldOut    Type = "sale.sold_out" // an exposed sale has all its units in orders
	OrderPaid      Type = "order.paid"
	OrderCancelled Type = "order.cancelled"
	OrderExpired   Type = "order.expired"
	OrderShipped   Type = "order.shipped"
	SaleClosed     Type = "sale.closed"
)

// Types lists all types, in the same order.
func Types() []Type {
	return []Type{
		SaleExposed, OrderFailed, OrderCreated, SaleSoldOut, OrderPaid, OrderCancelled,
		OrderExpired, OrderShipped, SaleClosed,
	}
}

// Ranking orders events of one millisecond. These are events of one transaction, or a payment and
// the next change of its order: a payment does not lock the sale.
func (t Type) Ranking() int { return slices.Index(Types(), t) }

// OfStatus returns the type of the change that ends in a status.
func OfStatus(s order.Status) Type { return Type("order." + s) }

// Event is one change, with what its item shows. Order is the zero value for an event of the sale.
type Event struct {
	Position int64 // from 1 on; grows from event to event, with gaps
	Type     Type
	At       time.Time
	Sale     seckill.Sale
	Order    order.Order
}

// Filter chooses events.
type Filter struct {
	MerchantID string // "": of all merchants
	Types      []Type // empty: of all types
	After      int64  // positions above this one
	To         int64  // positions up to this one; 0: all
}
