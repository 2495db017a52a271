package rabbit

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Of StallAfter: when a connection is given up because it has confirmed nothing at all, for its node may be cut off or asleep
// while another serves; when because one shard has been silent while others were not; and when because it has refused all
// that was sent to one shard. RabbitMQ (3.10.8) refuses for ever what comes on a channel whose first message for a quorum queue arrived
// between the end of the node that led it and the election of another: only a new channel cures it (ADR 52).
const (
	giveUpAfter        = 2
	giveUpShardAfter   = 5
	giveUpRefusedAfter = 2
)

// watch is what a session knows of its broker's health.
type watch struct {
	blocked amqp.Blocking
	all     silence
	shards  []silence
}

// look counts late confirms, finds out how long each shard has been silent, and gives the connection up after too long. A blocked
// broker says itself when it goes on.
func (s *session) look(w *watch, now time.Time) error {
	s.sweep()
	for _, lane := range s.lanes {
		select {
		case reason := <-lane.closed:
			return fmt.Errorf("channel ended: %w", ended(reason))
		default:
		}
	}
	var settled uint64
	for i := range s.flows {
		settled += s.flows[i].kept.Load() + s.flows[i].refused.Load()
		if err := s.lookAt(w, i, now); err != nil {
			return err
		}
	}
	if silent := w.all.look(settled, len(s.slots) == 0 || w.blocked.Active, now); silent > giveUpAfter*s.opt.StallAfter {
		return fmt.Errorf("nothing confirmed for %v", silent)
	}
	return nil
}

// lookAt judges one shard.
func (s *session) lookAt(w *watch, shard int, now time.Time) error {
	f := &s.flows[shard]
	silent := w.shards[shard].look(f.kept.Load(), f.idle() || w.blocked.Active, now)
	f.trouble.Store(w.trouble(silent, s.opt.StallAfter))
	switch refusing := f.refusing.Load(); {
	case refusing && silent > giveUpRefusedAfter*s.opt.StallAfter:
		return fmt.Errorf("%s has refused all for %v", queueName(shard), silent)
	case silent > giveUpShardAfter*s.opt.StallAfter:
		return fmt.Errorf("nothing confirmed for %v by %s", silent, queueName(shard))
	}
	return nil
}

// trouble says why nothing should be sent, nil if it may.
func (w *watch) trouble(silent, stallAfter time.Duration) *string {
	var why string
	switch {
	case w.blocked.Active:
		why = "the broker is blocked: " + w.blocked.Reason
	case silent > stallAfter:
		why = fmt.Sprintf("the broker has confirmed nothing for %v", silent.Round(watchEvery))
	default:
		return nil
	}
	return &why
}
