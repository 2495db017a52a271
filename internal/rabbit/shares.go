package rabbit

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// samePriority is the priority of every consumer. RabbitMQ 4 activates a consumer of higher
// priority in place of the active one. If the active one dies before it has acknowledged its
// messages, the broker keeps it among those that wait, and later activates the dead consumer. No
// live one then gets messages. Consumers of one priority do not replace each other. The highest
// value places them before the consumers of older releases, and before dead ones that those left
// behind.
const samePriority = math.MaxInt32

// A process that still has too many shards after a hand-over waits for handOverPause before the
// next one. It waits for one handOverPause more each time, up to handOverMost. A consumer that the
// broker counts and never activates then costs little.
const (
	handOverPause = time.Second
	handOverMost  = time.Minute
)

// shares spreads the shards over the processes that consume them. Each process also consumes the
// dead letters, and the broker counts the consumers of that queue. (Of a queue with a single active
// consumer AMQP reports only that one.) So processes need no list of each other. A process whose
// shards are more than its share ends the streams of the surplus, and opens them again behind the
// consumers that wait. The broker activates the consumer that has waited longest.
type shares struct {
	shards int

	mu        sync.Mutex
	streams   map[*stream]struct{} // of shards
	processes int                  // as the broker counted last
	next      time.Time            // no hand-over before that
	pause     time.Duration
}

func newShares(shards int) *shares {
	return &shares{shards: shards, streams: make(map[*stream]struct{})}
}

func (s *shares) add(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[st] = struct{}{}
}

func (s *shares) remove(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
}

// balance ends the streams of shards that are more than the share of this process, the latest
// activated ones first: their next consumer is probably not one that has just handed them over. A
// stream without a delivery counts as waiting, because an idle shard costs nothing. processes is
// the broker's count, and 0 if the broker does not know it. Each stream calls balance once a
// second.
func (s *shares) balance(processes int, now time.Time) {
	if processes == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if processes != s.processes {
		s.processes, s.pause, s.next = processes, 0, now
	}
	if now.Before(s.next) {
		return
	}
	var active []*stream
	for st := range s.streams {
		if st.activeSince.Load() != 0 {
			active = append(active, st)
		}
	}
	surplus := len(active) - (s.shards+processes-1)/processes
	if surplus <= 0 {
		return
	}
	s.pause = min(s.pause+handOverPause, handOverMost)
	s.next = now.Add(s.pause)
	slices.SortFunc(active, func(a, b *stream) int {
		return cmp.Compare(b.activeSince.Load(), a.activeSince.Load())
	})
	for _, st := range active[:surplus] {
		delete(s.streams, st)
		close(st.handedOver)
	}
}
