package order

import (
	"errors"
	"time"

	"flashsale.dev/seckill/internal/ordersn"
)

// DeadLetter is an order or a message that could not be written, with what a requeue needs.
type DeadLetter struct {
	ID          string        // a UUIDv7; the store makes one if it is empty
	GoodsID     int64         // 0 if the message has none
	OrderSn     string        // empty for an unreadable message
	Reason      FailureReason // why
	Attempts    int           // how often the queue delivered it
	FirstSeenAt time.Time     // when its message was published
	Origin      string        // the queue of its message, or the step that failed
	Body        []byte        // the message, or one of this order alone; may be binary
}

// ErrNoSuchDeadLetter means that no dead letter has this id, or no longer.
var ErrNoSuchDeadLetter = errors.New("no such dead letter")

// DeadLetterID returns the id of the dead letter of an order without a row. The order number decides
// it, so that a repeated failure writes one dead letter.
func DeadLetterID(orderSn string) string { return ordersn.ID(orderSn).String() }
