package memqueue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// item is one message; acked is closed when it has been acknowledged.
type item struct {
	body     []byte
	seen     time.Time
	attempts int
	tag      uint64
	acked    chan struct{}
}

// shard is one ordered queue: held, in order, then ready, in order.
type shard struct {
	origin string
	room   chan struct{} // one token per message kept

	mu      sync.Mutex
	ready   []*item   // to be handed out
	held    []*item   // handed out to the first stream and not acknowledged
	streams []*stream // open ones, the oldest first: that one is active
}

func newShard(n, capacity int) *shard {
	return &shard{origin: fmt.Sprintf("memory.%d", n), room: make(chan struct{}, capacity)}
}

func (s *shard) publish(ctx context.Context, it *item) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	s.ready = append(s.ready, it)
	s.wake()
	s.mu.Unlock()
	select {
	case <-it.acked:
		return nil
	case <-ctx.Done():
		return s.leave(it, ctx.Err())
	}
}

// leave withdraws a message that nobody has seen. An acknowledgement that came at the last moment counts.
func (s *shard) leave(it *item, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-it.acked:
		return nil
	default:
	}
	if i := slices.Index(s.ready, it); i >= 0 && it.attempts == 0 {
		s.ready = slices.Delete(s.ready, i, i+1)
		<-s.room
	}
	return err
}

// wake tells the active stream to look again. The lock is held.
func (s *shard) wake() {
	if len(s.streams) == 0 {
		return
	}
	select {
	case s.streams[0].look <- struct{}{}:
	default:
	}
}

func (s *shard) join(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, st)
	s.wake()
}

// take hands the next message to the stream, if it is active and its prefetch allows one.
func (s *shard) take(st *stream) (order.Delivery, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) == 0 || s.streams[0] != st || len(s.ready) == 0 || len(s.held) >= st.prefetch {
		return order.Delivery{}, false
	}
	it := s.ready[0]
	s.ready[0] = nil // or the slice would keep it alive
	s.ready, s.held = s.ready[1:], append(s.held, it)
	st.tag++
	it.tag = st.tag
	it.attempts++
	info := order.DeliveryInfo{Origin: s.origin, Attempts: it.attempts, FirstSeenAt: it.seen}
	return order.Delivery{DeliveryInfo: info, Body: it.body, Tag: it.tag}, true
}

// ack ends the messages up to tag.
func (s *shard) ack(tag uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.held) && s.held[n].tag <= tag {
		n++
	}
	if n == 0 || s.held[n-1].tag != tag {
		return fmt.Errorf("tag %d is not out", tag)
	}
	for _, it := range s.held[:n] {
		close(it.acked)
		<-s.room
	}
	s.held = slices.Delete(s.held, 0, n)
	s.wake()
	return nil
}

// part takes the stream out. What the active one held goes back to where it was, before all that waits.
func (s *shard) part(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.streams, st)
	s.streams = slices.Delete(s.streams, i, i+1)
	if i == 0 {
		s.ready, s.held = append(s.held, s.ready...), nil
		s.wake()
	}
}
