package order

import (
	"time"

	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Status is where an order is in its life.
type Status string

// The life of an order: queued → created → paid | cancelled | expired, or queued → failed.
const (
	Queued    Status = "queued"    // in Redis and on its way; MySQL has no row yet
	Created   Status = "created"   // committed; to be paid by PayBy
	Paid      Status = "paid"      // final
	Cancelled Status = "cancelled" // final; its units went back on sale
	Expired   Status = "expired"   // final; not paid in time, its units went back on sale
	Failed    Status = "failed"    // final; it could not be written, FailureReason says why
)

// Final tells whether a status changes no more.
func (s Status) Final() bool { return s != Queued && s != Created }

// Active tells whether an order of this status holds units in MySQL.
func (s Status) Active() bool { return s == Created || s == Paid }

// Order is one buyer's order. Money is in the currency's smallest unit; a zero time is "not yet".
type Order struct {
	reservation.OrderLine
	GoodsID       int64
	Epoch         int64 // of its reservation
	Amount        int64
	Status        Status
	FailureReason FailureReason // of a Failed one
	CreatedAt     time.Time     // when the row was written
	PayBy         time.Time
	PaidAt        time.Time
	ClosedAt      time.Time // when it was cancelled, expired or failed
}

// Tombstone reports whether an order is only the record that its reservation was lost. Its quantity
// is unknown, and its buyer is the first one that asked for it.
func (o Order) Tombstone() bool {
	return o.Status == Failed && o.FailureReason == FailedLost && o.Quantity == 0
}

// FailureReason says in a stable word why an order could not be written.
type FailureReason string

// The reasons of a failed order and of its dead letter.
const (
	FailedOversold  FailureReason = "NO_STOCK"      // MySQL has fewer units left than were reserved
	FailedOverLimit FailureReason = "OVER_LIMIT"    // the buyer would hold more than the sale allows
	FailedMalformed FailureReason = "MALFORMED"     // the message breaks a rule
	FailedUnwritten FailureReason = "UNWRITABLE"    // MySQL refuses this row whatever it is tried with
	FailedLost      FailureReason = "LOST"          // its reservation was lost with Redis
	FailedNoSale    FailureReason = "NO_SUCH_GOODS" // the goods it names do not exist
)
