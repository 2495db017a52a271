package model

import "slices"

// orderRecord is the history of one order that a script has reserved units for.
type orderRecord struct {
	line
	server      *server
	reservedAt  int
	publishedAt int // tick; -1 before the first
	copies      int
	promised    bool
	// lost: the Redis that is master lacks the reservation, so that no worker can publish it. Only
	// its API can, and nothing bounds when.
	lost           bool
	answeredFailed bool
	// failed: MySQL wrote it as failed after it was promised, whatever operators did later.
	failed, requeued, discarded bool
	republished                 int
}

// records are the orders as an observer of every server would have recorded them.
type records struct {
	all  []*orderRecord
	bySn map[[3]int]*orderRecord
	// closed has the goods whose close a merchant was answered.
	closed map[int]bool
}

func newRecords() *records {
	return &records{bySn: map[[3]int]*orderRecord{}, closed: map[int]bool{}}
}

func (r *records) of(l line) *orderRecord { return r.bySn[[3]int{l.goods, l.sn, l.buyer}] }

// add returns the record of an order, and makes it where there is none.
func (r *records) add(l line) *orderRecord {
	f := r.of(l)
	if f == nil {
		f = &orderRecord{line: l, publishedAt: -1}
		r.all = append(r.all, f)
		r.bySn[[3]int{l.goods, l.sn, l.buyer}] = f
	}
	return f
}

// line returns the order that has been reserved under a number.
func (r *records) line(l line) line {
	if f := r.of(l); f != nil {
		return f.line
	}
	return l
}

func (r *records) reserve(w *world, s *server, l line) {
	w.logf("reserved: order %d of goods %d (epoch %d), %d for buyer %d, by server %d",
		l.sn, l.goods, l.epoch, l.q, l.buyer, s.replid)
	if s.time() >= w.saleEnd {
		w.violated("G6", "order %d was reserved after the sale's end", l.sn)
	}
	if r.closed[l.goods] {
		w.violated("G6", "order %d was reserved after the close was answered", l.sn)
	}
	f := r.add(l)
	f.line, f.server, f.reservedAt = l, s, w.now // again, if Redis had lost it
	f.lost = s != w.current
}

// promise records that a buyer is answered an order number. A repeated path of an order that has
// failed returns its number, and promises nothing.
func (w *world) promise(l line, taken bool) {
	r := w.db.find(l.goods, l.sn)
	if f := w.records.of(l); f != nil && (taken || r == nil || r.status != failedOrder) {
		f.promised = true
		f.failed = f.failed || r != nil && r.status == failedOrder
	}
}

// noteFailed records that a promised order fails.
func (w *world) noteFailed(l line, s status) {
	if f := w.records.of(l); f != nil && f.promised && s == failedOrder {
		f.failed = true
	}
}

// failOver marks the orders whose reservations the new master lacks.
func (r *records) failOver(from, to *server) {
	for _, f := range r.all {
		known := func(s *server) bool {
			k := s.goods[f.goods]
			_, pending := k.pending[f.sn]
			return pending || k.holds(f.buyer, f.sn)
		}
		if known(from) && !known(to) {
			f.lost = true
		}
	}
}

// queued records that the broker has a message.
func (w *world) queued(m message) {
	for _, l := range m.lines {
		f := w.records.of(l)
		if f == nil {
			continue
		}
		if f.copies++; f.publishedAt < 0 {
			f.publishedAt = w.now
			w.requirePublishedInTime(f)
		}
		if f.copies > mostCopies {
			w.violated("G4", "order %d of goods %d was published %d times, and the queue grows",
				f.sn, f.goods, f.copies)
		}
	}
}

// noteRepublished records the orders that the reconciler publishes while the queue still has them,
// unless a requeue may hold the consumer up.
func (w *world) noteRepublished(lines []line) {
	for _, l := range lines {
		f := w.records.of(l)
		if f == nil || f.publishedAt < 0 || !w.inQueue(l) || w.requeues {
			continue
		}
		if f.republished++; f.republished > 2 {
			w.violated("G4",
				"order %d of goods %d is republished while it is in the queue, which grows", l.sn,
				l.goods)
		}
	}
}

func (w *world) inQueue(l line) bool {
	q := w.queueOf(l.goods)
	has := func(m message) bool {
		return m.goods == l.goods && slices.Contains(numbers(m.lines), l.sn)
	}
	return slices.ContainsFunc(q.ready, has) || slices.ContainsFunc(q.unacked, has)
}

// requireWrittenInTime requires the queue to redeliver unwritten lines before the reconciler
// republishes them. In schedules with requeues a COMMIT or refused orders may hold the consumer up.
func (w *world) requireWrittenInTime(l line) {
	f := w.records.of(l)
	if f == nil || f.lost || w.requeues || f.publishedAt < 0 || !w.healed ||
		w.fault == queuePurged || w.fault == failBack {
		return
	}
	if from := max(f.publishedAt, w.healedAt); w.now-from > writtenBy {
		w.violated("G3", "order %d of goods %d was written %d ticks after it was in the queue",
			f.sn, f.goods, w.now-from)
	}
}

const (
	writtenBy  = 90
	mostCopies = 16
	relayedBy  = 70 // ticks from the reservation to the queue, without faults and rebuilds
)

// requirePublishedInTime requires the relay to publish the orders of a dead API before the
// reconciler republishes them.
func (w *world) requirePublishedInTime(f *orderRecord) {
	from := f.reservedAt
	if w.healed {
		from = max(from, w.healedAt)
	} else if w.now >= w.faultAt {
		return
	}
	if w.now-from > relayedBy && !f.lost {
		w.violated("G3",
			"order %d of goods %d was first in the queue %d ticks after its reservation", f.sn,
			f.goods, w.now-f.reservedAt)
	}
}
