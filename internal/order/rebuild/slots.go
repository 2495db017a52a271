package rebuild

import (
	"context"
	"slices"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/workers"
)

// slots bound how many rebuilds work at a time; nil slots bound nothing. A rebuild holds no slot
// while it sleeps: for the publish timeout, for its barrier, and for the end of another master's
// gate. It keeps the slot while it waits for a server.
//
// A slot that becomes free goes to the first waiting rebuild of a sale that requests wait for, and
// else to the first waiting one. asked reports which sales requests wait for at that moment.
type slots struct {
	asked func(goodsID int64) bool

	mu      sync.Mutex
	left    int
	waiting []waiter // first come first
}

type waiter struct {
	goodsID int64
	ready   chan struct{}
}

func newSlots(n int, asked func(goodsID int64) bool) *slots {
	return &slots{left: n, asked: asked}
}

func (s *slots) take(goodsID int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	if s.left > 0 {
		s.left--
		s.mu.Unlock()
		return
	}
	w := waiter{goodsID: goodsID, ready: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	<-w.ready
}

func (s *slots) free() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.left++
		return
	}
	next := max(0, slices.IndexFunc(s.waiting, func(w waiter) bool { return s.asked(w.goodsID) }))
	close(s.waiting[next].ready)
	s.waiting = slices.Delete(s.waiting, next, next+1)
}

// sleep waits without a slot. The error is that of an ended context.
func (s *slots) sleep(ctx context.Context, goodsID int64, d time.Duration) error {
	s.free()
	workers.Sleep(ctx, d)
	s.take(goodsID)
	return ctx.Err()
}
