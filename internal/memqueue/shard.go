package memqueue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// message is one published message. acked is closed when the consumer has acknowledged it.
type message struct {
	body      []byte
	published time.Time
	attempts  int
	tag       uint64
	acked     chan struct{}
}

// shard is one queue. Its order is that of unacked, then that of ready.
type shard struct {
	name string

	mu      sync.Mutex
	tag     uint64     // of the latest delivery; no stream acknowledges another's
	ready   []*message // not delivered, or returned
	unacked []*message // delivered to the active stream
	streams []*stream  // open ones, the oldest first; the first is the active one
}

// prefetch bounds the unacknowledged messages of a stream.
const prefetch = 512

// publish queues the message and waits for the acknowledgement.
func (s *shard) publish(ctx context.Context, m *message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	s.ready = append(s.ready, m)
	s.wake()
	s.mu.Unlock()
	select {
	case <-m.acked:
		return nil
	case <-ctx.Done():
		return s.withdraw(m, ctx.Err())
	}
}

// withdraw removes a message that was never delivered. It returns nil if the consumer has
// acknowledged the message meanwhile.
func (s *shard) withdraw(m *message, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-m.acked:
		return nil
	default:
	}
	if i := slices.Index(s.ready, m); i >= 0 && m.attempts == 0 {
		s.ready = slices.Delete(s.ready, i, i+1)
	}
	return err
}

// wake makes the active stream call take again. The caller holds the lock.
func (s *shard) wake() {
	if len(s.streams) == 0 {
		return
	}
	select {
	case s.streams[0].wake <- struct{}{}:
	default:
	}
}

// add appends a stream. It becomes active when all streams before it are removed.
func (s *shard) add(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, st)
	s.wake()
}

// take delivers the next message to a stream, if it is the active one and its prefetch allows it.
func (s *shard) take(st *stream) (order.Delivery, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[0] != st || len(s.ready) == 0 || len(s.unacked) >= prefetch {
		return order.Delivery{}, false
	}
	m := s.ready[0]
	s.ready[0] = nil // lets the garbage collector free it after the ack
	s.ready, s.unacked = s.ready[1:], append(s.unacked, m)
	s.tag++
	m.tag = s.tag
	m.attempts++
	info := order.DeliveryInfo{Origin: s.name, Attempts: m.attempts, FirstSeenAt: m.published}
	return order.Delivery{DeliveryInfo: info, Body: m.body, Tag: m.tag}, true
}

// ack acknowledges the unacknowledged messages up to the one with a tag.
func (s *shard) ack(tag uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.unacked) && s.unacked[n].tag <= tag {
		n++
	}
	if n == 0 || s.unacked[n-1].tag != tag {
		return fmt.Errorf("no unacknowledged message has tag %d", tag)
	}
	for _, m := range s.unacked[:n] {
		close(m.acked)
	}
	s.unacked = slices.Delete(s.unacked, 0, n)
	s.wake()
	return nil
}

// remove takes a stream out. The unacknowledged messages of the active one return to the head of
// ready.
func (s *shard) remove(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.streams, st)
	s.streams = slices.Delete(s.streams, i, i+1)
	if i == 0 {
		s.ready, s.unacked = append(s.unacked, s.ready...), nil
		s.wake()
	}
}
