package memqueue

import (
	"errors"
	"fmt"
	"sync"

	"flashsale.dev/seckill/internal/order"
)

var errClosed = errors.New("the stream is closed")

// stream is one consumer of a shard.
type stream struct {
	shard    *shard
	prefetch int
	tag      uint64 // the last one given; guarded by the shard's lock
	look     chan struct{}
	out      chan order.Delivery
	done     chan struct{}
	ended    chan struct{}
	once     sync.Once
}

func openStream(s *shard, prefetch int) *stream {
	st := &stream{
		shard: s, prefetch: prefetch, look: make(chan struct{}, 1),
		out: make(chan order.Delivery), done: make(chan struct{}), ended: make(chan struct{}),
	}
	s.join(st)
	go st.run()
	return st
}

// run hands out until Close.
func (st *stream) run() {
	defer close(st.ended)
	defer close(st.out)
	for {
		d, ok := st.shard.take(st)
		if !ok {
			select {
			case <-st.look:
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

func (st *stream) Deliveries() <-chan order.Delivery { return st.out }

func (st *stream) Ack(tag uint64) error {
	select {
	case <-st.done:
		return fmt.Errorf("ack: %w", errClosed)
	default:
	}
	if err := st.shard.ack(tag); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	return nil
}

func (st *stream) Close() error {
	st.once.Do(func() {
		close(st.done)
		<-st.ended
		st.shard.part(st)
	})
	return nil
}
