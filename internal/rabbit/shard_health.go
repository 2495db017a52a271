package rabbit

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// flow is what a session knows of one shard's messages. On a cluster a queue may be without a leader, or out of our node's sight, while
// the others confirm: so each shard is judged by its own confirms.
type flow struct {
	sent     atomic.Uint64
	kept     atomic.Uint64 // messages whose outcome has come, refusals apart
	refused  atomic.Uint64
	refusing atomic.Bool // the latest outcome was a refusal
	trouble  atomic.Pointer[string]
}

// settle counts one outcome.
func (f *flow) settle(outcome error) {
	refused := errors.Is(outcome, ErrRefused)
	f.refusing.Store(refused)
	if refused {
		f.refused.Add(1)
	} else {
		f.kept.Add(1)
	}
}

// idle says that nothing is waiting for a confirm: neither a message nor whoever was refused and has to come again.
func (f *flow) idle() bool {
	return !f.refusing.Load() && f.kept.Load()+f.refused.Load() == f.sent.Load()
}

// down is nil where the shard's messages may be sent.
func (f *flow) down() error {
	if why := f.trouble.Load(); why != nil {
		return fmt.Errorf("%w: %s", order.ErrQueueDown, *why)
	}
	return nil
}

// silence counts how long something has been waiting while nothing was confirmed. Its zero value has yet to begin.
type silence struct {
	confirmed uint64
	since     time.Time // when something was last confirmed, or nothing was waiting
}

// look says how long it has been by now; idle begins it anew.
func (s *silence) look(confirmed uint64, idle bool, now time.Time) time.Duration {
	if idle || confirmed != s.confirmed || s.since.IsZero() {
		s.confirmed, s.since = confirmed, now
	}
	return now.Sub(s.since)
}
