package gate

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

var errOpen = errors.New("ratelimit: redis failed a moment ago: circuit breaker is open")

const (
	maxFailures   = 3
	probeInterval = 100 * time.Millisecond
)

// breaker is a circuit breaker. It opens after three failed calls in a row, and then
// lets one call through each 100 ms until one succeeds.
type breaker struct {
	mu       sync.Mutex
	failures int
	next     time.Time // the next probe
	open     error     // errOpen with the error of the last failed call
}

// allow returns nil if a call may be made now.
func (b *breaker) allow(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return nil
	}
	if now.Before(b.next) {
		return b.open
	}
	b.next = now.Add(probeInterval)
	return nil
}

// record counts a failed call, or closes the breaker after a success.
func (b *breaker) record(now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.failures = 0
		return
	}
	b.failures++
	if b.failures >= maxFailures {
		b.next, b.open = now.Add(probeInterval), fmt.Errorf("%w: %w", errOpen, err)
	}
}
