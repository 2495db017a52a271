package gate

import "sync/atomic"

// Event is something that a Metrics counts, by rule.
type Event int

// The events. Allowed and Denied are what the caller was told; the others say
// how it came about and may come with either.
const (
	EventAllowed Event = iota
	EventDenied
	// EventWaited: allowed, after a wait.
	EventWaited
	// EventDryRun: would have been denied or made to wait.
	EventDryRun
	// EventByLease: from permits that the node held.
	EventByLease
	// EventByMemory: denied without asking, by a denial that still holds.
	EventByMemory
	// EventError: Redis did not decide in time; onError did.
	EventError
	// EventRedisCall: one call to Redis, counted for the rule that led it.
	EventRedisCall
	eventCount
)

// String is the event's name as a metric's label.
func (e Event) String() string {
	return [...]string{"allowed", "denied", "waited", "dry_run", "by_lease", "by_memory", "error", "redis_call"}[e]
}

// Events lists them all.
func Events() []Event {
	all := make([]Event, eventCount)
	for i := range all {
		all[i] = Event(i)
	}
	return all
}

// Metrics counts events by rule. It is called on every decision, by many
// goroutines at once.
type Metrics interface {
	Count(rule string, event Event)
}

// Counters is a Metrics that adds up over all rules.
type Counters struct{ n [eventCount]atomic.Int64 }

var _ Metrics = (*Counters)(nil)

// Count is Metrics's.
func (c *Counters) Count(_ string, event Event) { c.n[event].Add(1) }

// Of gives how often an event was counted.
func (c *Counters) Of(event Event) int64 { return c.n[event].Load() }

type noMeter struct{}

func (noMeter) Count(string, Event) {}
