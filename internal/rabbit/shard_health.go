package rabbit

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// shardHealth counts one shard's messages on a connection. A cluster may have no leader for one
// queue while the others confirm. The health check therefore judges each shard by its own confirms.
type shardHealth struct {
	sent    atomic.Uint64
	settled atomic.Uint64 // messages with an outcome other than a nack
	nacked  atomic.Uint64
	nacking atomic.Bool            // the latest outcome was a nack
	reason  atomic.Pointer[string] // cause while the shard is down; nil if it is up
}

// settle counts one outcome.
func (h *shardHealth) settle(outcome error) {
	nacked := errors.Is(outcome, ErrNacked)
	h.nacking.Store(nacked)
	if nacked {
		h.nacked.Add(1)
	} else {
		h.settled.Add(1)
	}
}

// idle is true when no message is in flight and the latest one was not nacked.
func (h *shardHealth) idle() bool {
	return !h.nacking.Load() && h.settled.Load()+h.nacked.Load() == h.sent.Load()
}

// err is nil while the shard is up.
func (h *shardHealth) err() error {
	if reason := h.reason.Load(); reason != nil {
		return fmt.Errorf("%w: %s", order.ErrQueueDown, *reason)
	}
	return nil
}

// stallTimer measures how long messages have been in flight without a confirm. The zero value is
// ready.
type stallTimer struct {
	confirmed uint64
	since     time.Time // of the last confirm, or of the last time without messages in flight
}

// elapsed returns the time since the last progress. It restarts while the shard is idle.
func (t *stallTimer) elapsed(confirmed uint64, idle bool, now time.Time) time.Duration {
	if idle || confirmed != t.confirmed || t.since.IsZero() {
		t.confirmed, t.since = confirmed, now
	}
	return now.Sub(t.since)
}
