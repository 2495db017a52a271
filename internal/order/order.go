package order

import (
	"time"

	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Status is the state of an order.
type Status string

// The states of an order: queued → created → paid | cancelled | expired, or queued → failed.
const (
	Queued    Status = "queued"    // reserved in Redis or parked; MySQL has no row yet
	Created   Status = "created"   // committed; must be paid by PayBy
	Paid      Status = "paid"      // final
	Cancelled Status = "cancelled" // final; its units returned to the sale
	Expired   Status = "expired"   // final; not paid in time, its units returned to the sale
	Failed    Status = "failed"    // final; not written, for its FailureReason
)

// Statuses lists all states.
func Statuses() []Status { return []Status{Queued, Created, Paid, Cancelled, Expired, Failed} }

// Final reports whether a status never changes again.
func (s Status) Final() bool { return s != Queued && s != Created }

// Active reports whether an order of this status has its units.
func (s Status) Active() bool { return s == Created || s == Paid }

// Order is one buyer's order. Money is in the currency's smallest unit; a zero time is "not yet".
type Order struct {
	reservation.OrderLine
	GoodsID       int64
	Amount        int64
	Status        Status
	FailureReason FailureReason // of a Failed one
	CreatedAt     time.Time     // when the row was written
	PayBy         time.Time
	PaidAt        time.Time
	ClosedAt      time.Time // when it was cancelled, expired or failed
	// CheckoutURL is the provider's page where the buyer pays; "" without one. Only a Created order
	// can still be paid there.
	CheckoutURL string
	ShippedAt   time.Time // zero until the merchant has sent a paid order
	Shipment    `gorm:"embedded"`
	// Address is where it goes, encrypted; "" until the buyer has entered it.
	Address string
}

// Shipment is how a merchant sent an order.
type Shipment struct {
	Carrier        string // at most 64 characters
	TrackingNumber string // at most 128 characters; may be empty
}

// Tombstone reports whether an order is only the record that its reservation was lost. Its quantity
// is unknown, and for a number of an earlier release its buyer is the first one that queried it.
func (o Order) Tombstone() bool {
	return o.Status == Failed && o.FailureReason == FailedLost && o.Quantity == 0
}

// FailureReason is the stable code for the cause of a failed order.
type FailureReason string

// The reasons of a failed order and of its dead letter.
const (
	FailedOversold  FailureReason = "NO_STOCK"      // MySQL has fewer units left than were reserved
	FailedOverLimit FailureReason = "OVER_LIMIT"    // the buyer would exceed the sale's limit
	FailedMalformed FailureReason = "MALFORMED"     // the message breaks a rule
	FailedUnwritten FailureReason = "UNWRITABLE"    // MySQL refuses this row on every attempt
	FailedLost      FailureReason = "LOST"          // its reservation was lost with Redis
	FailedNoSale    FailureReason = "NO_SUCH_GOODS" // the goods it names do not exist
)

// FailureReasons lists all reasons.
func FailureReasons() []FailureReason {
	return []FailureReason{
		FailedOversold, FailedOverLimit, FailedMalformed, FailedUnwritten, FailedLost, FailedNoSale,
	}
}
