package rabbit

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// healthCheckEvery is the period of a publisher connection's health check.
const healthCheckEvery = 100 * time.Millisecond

// A connection ends after so many times StallAfter in three cases. It gets no confirm at all,
// because its node may be partitioned or paused. It gets no confirm of one shard while others
// confirm. It gets only nacks from one shard, which is a defect of RabbitMQ 3.10.8. A channel nacks
// everything if its first message for a quorum queue arrived between the death of the queue's
// leader and the next election. Only a new channel ends that (ADR 52).
const (
	endAfterStalls      = 2
	endAfterShardStalls = 5
	endAfterNacks       = 2
)

// healthCheck is the state of a publisher connection's periodic check.
type healthCheck struct {
	blocked amqp.Blocking
	all     stallTimer
	shards  []stallTimer
}

// checkHealth settles the late confirms, updates each shard's state, and returns an error if the
// connection is unusable. A blocked connection stays open, because the broker reports when it is
// unblocked.
func (p *publisherConnection) checkHealth(h *healthCheck, now time.Time) error {
	p.settleAbandoned()
	for _, ch := range p.channels {
		select {
		case reason := <-ch.closed:
			return fmt.Errorf("channel ended: %w", closeError(reason))
		default:
		}
	}
	var settled uint64
	for i := range p.shards {
		settled += p.shards[i].settled.Load() + p.shards[i].nacked.Load()
		if err := p.checkShard(h, i, now); err != nil {
			return err
		}
	}
	idle := len(p.inFlight) == 0 || h.blocked.Active
	if stall := h.all.elapsed(settled, idle, now); stall > endAfterStalls*p.opt.StallAfter {
		return p.stall(allShards, "nothing confirmed for %v", stall.Round(healthCheckEvery))
	}
	return nil
}

// checkShard updates one shard's state. A shard that is down fails its publishes at once, so that
// callers do not wait for their deadlines. The other shards are not affected.
func (p *publisherConnection) checkShard(h *healthCheck, shard int, now time.Time) error {
	s := &p.shards[shard]
	stall := h.shards[shard].elapsed(s.settled.Load(), s.idle() || h.blocked.Active, now)
	s.reason.Store(h.downReason(stall, p.opt.StallAfter))
	switch nacking := s.nacking.Load(); {
	case nacking && stall > endAfterNacks*p.opt.StallAfter:
		return p.stall(shard, "%s nacked every message for %v", queueName(shard),
			stall.Round(healthCheckEvery))
	case stall > endAfterShardStalls*p.opt.StallAfter:
		return p.stall(shard, "%s confirmed nothing for %v", queueName(shard),
			stall.Round(healthCheckEvery))
	}
	return nil
}

// allShards stands for every shard in a stallError.
const allShards = -1

// stallError ends a connection that got no confirm. The next one may fare no better, as with a
// RabbitMQ whose disk was full. Operators see the stall until a message is confirmed, or for
// stallMemory if none is sent.
type stallError struct {
	shard  int // or allShards
	reason string
	until  time.Time
}

// stallMemory is longer than a connection without confirms lasts, in multiples of StallAfter.
const stallMemory = endAfterShardStalls + 1

func (p *publisherConnection) stall(shard int, format string, args ...any) error {
	return &stallError{
		shard, fmt.Sprintf(format, args...), time.Now().Add(stallMemory * p.opt.StallAfter),
	}
}

// Error returns the reason.
func (s *stallError) Error() string { return s.reason }

// lasts reports whether the stall goes on, as far as the next connection knows.
func (s *stallError) lasts(next *publisherConnection) bool {
	if s == nil || time.Now().After(s.until) {
		return false
	}
	for i := range next.shards {
		if (s.shard == allShards || s.shard == i) && next.shards[i].settled.Load() > 0 {
			return false
		}
	}
	return true
}

// downReason returns the reason for which no messages may be sent, or nil.
func (h *healthCheck) downReason(stall, stallAfter time.Duration) *string {
	var reason string
	switch {
	case h.blocked.Active:
		reason = "the broker is blocked: " + h.blocked.Reason
	case stall > stallAfter:
		reason = fmt.Sprintf("the broker has confirmed nothing for %v",
			stall.Round(healthCheckEvery))
	default:
		return nil
	}
	return &reason
}
