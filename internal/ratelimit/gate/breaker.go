package gate

import (
	"errors"
	"sync"
	"time"
)

// errOpen says that the breaker keeps Redis from being asked.
var errOpen = errors.New("ratelimit: redis is not asked: it failed a moment ago")

const (
	breakAfter = 3
	tryEvery   = 100 * time.Millisecond
)

// breaker stops asking after three failures in a row and lets one ask through
// each 100 ms to see whether Redis is back.
type breaker struct {
	mu       sync.Mutex
	failures int
	next     time.Time
}

// allow says whether Redis may be asked now.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakAfter {
		return true
	}
	if now.Before(b.next) {
		return false
	}
	b.next = now.Add(tryEvery)
	return true
}

func (b *breaker) record(now time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok {
		b.failures = 0
		return
	}
	b.failures++
	if b.failures >= breakAfter {
		b.next = now.Add(tryEvery)
	}
}
