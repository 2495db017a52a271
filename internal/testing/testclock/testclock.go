// Package testclock is a clock that only tests move.
package testclock

import (
	"sync"
	"time"
)

// Clock stands still until Add moves it. New makes one. It is safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// New returns a clock at midnight UTC of a fixed day. Windows that align to the epoch therefore
// start at the same moment.
func New() *Clock { return &Clock{at: time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Add moves the clock by d, backwards if d is negative.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
