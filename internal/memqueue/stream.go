package memqueue

import (
	"fmt"
	"sync"

	"flashsale.dev/seckill/internal/order"
)

// stream is one consumer of a shard.
type stream struct {
	shard *shard
	wake  chan struct{} // the shard may have a message for this stream
	out   chan order.Delivery
	done  chan struct{} // closed by Close
	ended chan struct{} // closed when deliver has returned
	once  sync.Once
}

// openStream starts the stream's goroutine, which ends with Close.
func openStream(s *shard) *stream {
	st := &stream{
		shard: s, wake: make(chan struct{}, 1),
		out: make(chan order.Delivery), done: make(chan struct{}), ended: make(chan struct{}),
	}
	s.add(st)
	go st.deliver()
	return st
}

// deliver passes messages on until Close.
func (st *stream) deliver() {
	defer close(st.ended)
	defer close(st.out)
	for {
		d, ok := st.shard.take(st)
		if !ok {
			select {
			case <-st.wake:
				continue
			case <-st.done:
				return
			}
		}
		select {
		case st.out <- d:
		case <-st.done:
			return
		}
	}
}

// Deliveries returns the channel of deliveries, which Close closes.
func (st *stream) Deliveries() <-chan order.Delivery { return st.out }

// Ack acknowledges the delivery with a tag and all before it. The error means that no
// unacknowledged delivery has the tag.
func (st *stream) Ack(tag uint64) error {
	if err := st.shard.ack(tag); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	return nil
}

// Close returns the unacknowledged messages to the shard. Its error is always nil.
func (st *stream) Close() error {
	st.once.Do(func() {
		close(st.done)
		<-st.ended
		st.shard.remove(st)
	})
	return nil
}
