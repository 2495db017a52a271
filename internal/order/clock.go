package order

import (
	"context"
	"time"
)

// Clock is the database's clock. It dates rows and decides which are due, because the clocks of
// hosts differ.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}

// Times are the moments of a transaction that creates orders.
type Times struct {
	Now    time.Time // by the database's clock
	PayBy  time.Time // when the orders expire unpaid
	ReadAt time.Time // by this host's clock, when Now was read; zero: Later adds nothing
}

// ReadTimes reads the clock for orders that may stay unpaid for a duration.
func ReadTimes(ctx context.Context, c Clock, unpaid time.Duration) (Times, error) {
	now, err := c.Now(ctx)
	return Times{Now: now, PayBy: now.Add(unpaid), ReadAt: time.Now()}, err
}

// Later returns the moments moved on by the time since they were read. A transaction calls it once
// it has its locks. Otherwise a process that slept, or waited for a lock, could create an order
// that expires at once.
func (t Times) Later() Times {
	if t.ReadAt.IsZero() {
		return t
	}
	waited := time.Since(t.ReadAt)
	return Times{Now: t.Now.Add(waited), PayBy: t.PayBy.Add(waited)}
}
