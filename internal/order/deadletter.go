package order

import (
	"errors"
	"time"
)

// DeadLetter keeps an order or a message that could not be written, with all it takes to judge it and to try again.
type DeadLetter struct {
	ID          string        // a UUIDv7; the store makes one where it is empty
	GoodsID     int64         // 0 where the message did not say
	OrderSn     string        // empty for a message that could not be read
	Reason      FailureReason // why
	Attempts    int           // how often the queue delivered it
	FirstSeenAt time.Time     // when its message was published
	Origin      string        // the queue that it came from; of an order that no message brought, the step that failed
	Body        []byte        // the message as it came, or one of this order alone; need not be text
}

// ErrNoSuchDeadLetter says that there is no dead letter of an id, or no longer.
var ErrNoSuchDeadLetter = errors.New("no such dead letter")
