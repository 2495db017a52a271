package gate

import (
	"errors"
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
}

// allow reports whether a call may be made now.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return true
	}
	if now.Before(b.next) {
		return false
	}
	b.next = now.Add(probeInterval)
	return true
}

// record counts a failed call, or closes the breaker after a success.
func (b *breaker) record(now time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok {
		b.failures = 0
		return
	}
	b.failures++
	if b.failures >= maxFailures {
		b.next = now.Add(probeInterval)
	}
}
