package rabbit

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// watch is what a session knows of its broker's health.
type watch struct {
	blocked amqp.Blocking
	settled uint64        // at the last look
	since   time.Time     // when something was last confirmed, or nothing was waiting
	silent  time.Duration // since then, at the last look
}

// look counts late confirms, finds out how long the broker has been silent, and gives the connection up after too long. A blocked
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
	settled := s.settled.Load()
	if len(s.slots) == 0 || settled != w.settled || w.blocked.Active {
		w.settled, w.since = settled, now
	}
	w.silent = now.Sub(w.since)
	if w.silent > giveUpAfter*s.opt.StallAfter {
		return fmt.Errorf("nothing confirmed for %v", w.silent)
	}
	return nil
}

// trouble says why nothing should be sent, nil if it may.
func (w *watch) trouble(stallAfter time.Duration) *string {
	var why string
	switch {
	case w.blocked.Active:
		why = "the broker is blocked: " + w.blocked.Reason
	case w.silent > stallAfter:
		why = fmt.Sprintf("the broker has confirmed nothing for %v", w.silent.Round(watchEvery))
	default:
		return nil
	}
	return &why
}
