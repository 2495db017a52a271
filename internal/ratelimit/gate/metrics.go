package gate

// Event is a kind of event that Options.Count counts by rule.
type Event int

// The events. Each decision is EventAllowed or EventDenied, or both if Result.Wait refuses to wait
// for what was allowed. The others describe the way to the decision and accompany either.
const (
	EventAllowed Event = iota
	EventDenied
	// EventNearLimit: allowed, and less than a fifth of the permits is left.
	EventNearLimit
	// EventWaited: allowed, and the caller waited until the permits were good.
	EventWaited
	// EventDryRun: allowed only because the rule is a dry run.
	EventDryRun
	// EventLease: allowed by a permit of the node's lease.
	EventLease
	// EventDenialCache: denied without a call.
	EventDenialCache
	// EventError: Redis did not decide in time, so the rule's onError applied.
	EventError
	// EventRedisCall: one call to Redis, counted for the first rule of the batch.
	EventRedisCall
	// EventManyKeys: decided by this node's share, because it has Options.MaxKeys in Redis.
	EventManyKeys
	eventCount
)

// String is the event's label value.
func (e Event) String() string {
	return [...]string{
		"allowed", "denied", "near_limit", "waited", "dry_run", "lease", "denial_cache", "error",
		"redis_call", "many_keys",
	}[e]
}

// Events lists all events, in order.
func Events() []Event {
	all := make([]Event, eventCount)
	for i := range all {
		all[i] = Event(i)
	}
	return all
}
