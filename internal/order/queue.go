package order

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Publisher hands messages to the durable queue between Redis and MySQL.
type Publisher interface {
	// Publish sends one message to the goods' shard and returns nil once the queue has confirmed
	// it. A message that the broker returned as unroutable, or nacked, is an error. After the
	// context's deadline the outcome is unknown. While the publisher detects that the queue is
	// down, Publish returns ErrQueueDown at once. Concurrent calls do not wait for each other's
	// confirms.
	Publish(ctx context.Context, goodsID int64, body []byte) error
}

// ErrQueueDown means that the queue is down and that the publisher sent nothing.
var ErrQueueDown = errors.New("the order queue is down")

// Delivery is one message that is delivered and not yet acknowledged.
type Delivery struct {
	DeliveryInfo
	Body        []byte
	Tag         uint64 // grows within a stream
	TraceParent string // trace context of the publisher, for a Tracer; "" where it is not traced
}

// DeliveryInfo is the history of a message in the queue. A dead letter keeps it.
type DeliveryInfo struct {
	Origin      string    // the queue that the message was published to
	Attempts    int       // deliveries so far, the present one included; at least 1
	FirstSeenAt time.Time // when it was published, by the publisher's clock; zero if unknown
}

// Stream is one shard's deliveries in publishing order. The number of unacknowledged deliveries is
// bounded. One goroutine uses it.
type Stream interface {
	// Deliveries is closed when the connection ends, when the broker cancels the consumer, and when
	// the process hands the shard over to another one.
	Deliveries() <-chan Delivery
	// Ack acknowledges a delivery and every one before it.
	Ack(tag uint64) error
	// Close ends the stream. Unacknowledged messages return to the queue, in order.
	Close() error
}

// Source opens the streams of the shards. Of all the processes that opened a shard's stream,
// exactly one gets its deliveries.
type Source interface {
	// Shards is the number of shards; they are numbered from 0.
	Shards() int
	// Open opens the stream of a shard.
	Open(ctx context.Context, shard int) (Stream, error)
}

// Pending is one reservation that is not confirmed as written to MySQL.
type Pending struct {
	reservation.OrderLine
	Entry []byte    // the line as JSON, to publish it again unchanged
	At    time.Time // when it was reserved, by Redis' clock
}

// Held is one order of a buyer's holding in Redis. A final order has no units. It stays there so
// that its path buys nothing again.
type Held struct {
	BuyerID  string
	OrderSn  string
	Quantity int64
}

// Numbers returns the order numbers of pending reservations.
func Numbers(list []Pending) []string {
	sns := make([]string, len(list))
	for i, p := range list {
		sns[i] = p.OrderSn
	}
	return sns
}

// MoveResult is the outcome of applying a stock move to Redis. scripts/lua/release.lua returns the
// same numbers.
type MoveResult int

// The results of a stock move.
const (
	MoveAppliedBefore MoveResult = 0 // nothing changed
	MoveApplied       MoveResult = 1
	MoveCovered       MoveResult = 2 // the epoch was loaded after the move and includes it
	MoveDeferred      MoveResult = 3 // the gate is not open, or Redis has an older epoch: retry
	CutTooLarge       MoveResult = 4 // refused: fewer units are unsold and promised to nobody
)

// ReturnAfter is how long after its beginning a requeue returns the units that it takes: it first
// writes a stock move with that future date, and deletes the move once the order is written. No
// other move has a future date.
const ReturnAfter = time.Minute

// Done reports whether the move needs no retry.
func (r MoveResult) Done() bool {
	return r == MoveAppliedBefore || r == MoveApplied || r == MoveCovered
}
