package rabbit

import (
	"fmt"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// flow is what a session knows of one shard's messages. On a cluster a queue may be without a leader, or out of our node's sight, while
// the others confirm: so each shard is judged by its own confirms.
type flow struct {
	sent    atomic.Uint64
	settled atomic.Uint64 // messages whose outcome has come
	trouble atomic.Pointer[string]
}

// refused is nil where the shard's messages may be sent.
func (f *flow) refused() error {
	if why := f.trouble.Load(); why != nil {
		return fmt.Errorf("%w: %s", order.ErrQueueDown, *why)
	}
	return nil
}

// silence counts how long something has been waiting while nothing was confirmed. Its zero value has yet to begin.
type silence struct {
	settled uint64
	since   time.Time // when something was last confirmed, or nothing was waiting
}

// look says how long it has been by now; idle begins it anew.
func (s *silence) look(settled uint64, idle bool, now time.Time) time.Duration {
	if idle || settled != s.settled || s.since.IsZero() {
		s.settled, s.since = settled, now
	}
	return now.Sub(s.since)
}
