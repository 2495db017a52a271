// Package testclock is a clock that tests move by hand.
package testclock

import (
	"sync"
	"time"
)

// Clock stands still until Add moves it. Make one with New. It is safe for
// many goroutines.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// New makes a clock that starts at midnight UTC of a fixed day, so that windows
// which are aligned to the epoch begin with it.
func New() *Clock { return &Clock{at: time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)} }

// Now is the time that the clock shows.
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
