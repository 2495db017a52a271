package order

import (
	"errors"
	"time"

	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// DeadLetter is an order or a message that could not be written, with what a requeue needs.
type DeadLetter struct {
	ID          string        `json:"id"`             // a UUIDv7; the store makes one if it is empty
	OrderSn     string        `json:"orderSn"`        // empty for an unreadable message
	GoodsID     int64         `json:"goodsId,string"` // 0 if the message has none
	Reason      FailureReason `json:"reason"`
	Attempts    int           `json:"attempts"`    // how often the queue delivered it
	FirstSeenAt time.Time     `json:"firstSeenAt"` // when its message was published
	Origin      string        `json:"origin"`      // the queue of its message, or the failed step
	// Body is the message, or one of this order alone; of a message that is far too long its
	// beginning. It may be binary, and it has the buyer's name and phone number, so JSON leaves it
	// out.
	Body []byte `json:"-"`
}

// Line returns the order's line of the message; false if the message is unreadable or has none. It
// checks neither the number's signature nor the line.
func (d DeadLetter) Line() (reservation.OrderLine, bool) {
	m, err := message.Decode(d.Body)
	if err != nil || m.GoodsID != d.GoodsID {
		return reservation.OrderLine{}, false
	}
	for _, l := range m.Orders {
		if l.OrderSn == d.OrderSn {
			return l, true
		}
	}
	return reservation.OrderLine{}, false
}

// ErrNoSuchDeadLetter means that no dead letter has this id, or no longer.
var ErrNoSuchDeadLetter = errors.New("no such dead letter")

// ErrActive means that an order is created or paid.
var ErrActive = errors.New("the order is active")

// DeadLetterID returns the id of the dead letter of an order without a row. It follows from the
// order number, so that a repeated failure writes one dead letter.
func DeadLetterID(orderSn string) string { return ordersn.ID(orderSn).String() }
