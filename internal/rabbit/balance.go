package rabbit

import (
	"sync"
	"time"
)

// giveAgainAfter passes before a shard is given away again that came straight back: nobody had waited for it.
const giveAgainAfter = time.Minute

// balance shares the shards out among the processes that consume.
//
// With a single active consumer RabbitMQ leaves a queue with the first that came, and lines up the others behind it, so a
// process that joins would stay idle. (Priorities that override this came with RabbitMQ 3.12.) Each process knows how many
// they are (presence). One that is active on more shards than its share of them, rounded up, ends a stream: its user
// finishes and acknowledges the batch in hand, closes the stream, and comes back behind those that wait.
// So a shard changes hands between two batches only: at no time do two write it, and at no time does it lack a consumer that is
// there for it, for the broker hands it on in the moment in which it is given back.
//
// It ends: all the shares together have room for every shard, and a process that was given one too many passes it on
// to the next in that queue's line. A shard counts from its first delivery on: one that is idle needs no sharing.
type balance struct {
	shards int

	mu     sync.Mutex
	active map[*stream]bool
	given  map[string]time.Time // by queue: when it was given away, or may be again
}

// has notes that a stream is the active one of its queue. A nil balance notes nothing.
func (b *balance) has(st *stream) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.active[st] {
		return
	}
	b.active[st] = true
	if at, ok := b.given[st.queue]; ok && time.Since(at) < giveAgainAfter/10 {
		b.given[st.queue] = at.Add(giveAgainAfter)
	}
}

// gone forgets a stream.
func (b *balance) gone(st *stream) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.active, st)
}

// tooMany says whether a stream should end for the good of the other processes, of so many in all. It forgets the stream then,
// so that the process gives away no more than it must.
func (b *balance) tooMany(st *stream, processes int, now time.Time) bool {
	if b == nil || processes < 2 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	share := (b.shards + processes - 1) / processes
	if !b.active[st] || len(b.active) <= share || now.Before(b.given[st.queue]) {
		return false
	}
	delete(b.active, st)
	b.given[st.queue] = now
	return true
}
