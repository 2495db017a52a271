package model

import (
	"fmt"
	"slices"
)

// fate is what is known of one order that a script took units for.
type fate struct {
	line
	server   *server
	takenAt  int
	queuedAt int // -1: never yet
	copies   int
	promised bool
	// mayBreak: Redis failed over to a server that lacks the reservation, or it was taken of a master that was none any more
	mayBreak   bool
	saidFailed bool
	fedAgain   int
	late       bool // its publisher missed the deadline: Redis alone carries it until the relay comes
}

// book is what an outsider who sees everything would have noted. sn alone may be used twice where numbers come from Redis.
type book struct {
	all  []*fate
	bySn map[[3]int]*fate
	// astray are the goods of which a demoted master has waived a late order that the current master counts as unsold.
	// Orders of the current master may lack those units, and its numbers differ until the next rebuild: docs/model.md.
	astray map[int]bool
}

func newBook() *book { return &book{bySn: map[[3]int]*fate{}, astray: map[int]bool{}} }

// letGo notes a demoted master that waives a late order.
func (b *book) letGo(w *world, s *server, goods int) {
	if s != w.current {
		b.astray[goods] = true
	}
}

func (b *book) of(l line) *fate { return b.bySn[[3]int{l.goods, l.sn, l.buyer}] }

func (b *book) line(goods, sn int) line {
	for _, f := range b.all {
		if f.goods == goods && f.sn == sn {
			return f.line
		}
	}
	return line{goods: goods, sn: sn}
}

func (b *book) take(w *world, s *server, l line) {
	w.say("taken: order %d of goods %d (epoch %d), %d for buyer %d, path %d, by server %d", l.sn, l.goods, l.epoch, l.q, l.buyer, l.path, s.replid)
	if w.now >= w.saleEnd {
		w.broken("G6", "order %d was taken after the sale's end", l.sn)
	}
	stale := w.fault == failover || w.fault == failBack
	f := &fate{line: l, server: s, takenAt: w.now, queuedAt: -1}
	f.mayBreak = stale && (s != w.current || l.epoch < w.db.goods[l.goods].epoch)
	b.all = append(b.all, f)
	b.bySn[[3]int{l.goods, l.sn, l.buyer}] = f
}

func (b *book) promise(l line) {
	if f := b.of(l); f != nil {
		f.promised = true
	}
}

// failOver excuses what the new master lacks.
func (b *book) failOver(from, to *server) {
	for _, f := range b.all {
		known := func(s *server) bool {
			k := s.goods[f.goods]
			_, pending := k.pending[f.sn]
			return pending || slices.ContainsFunc(k.buyers[f.buyer], func(h held) bool { return h.sn == f.sn })
		}
		if known(from) && !known(to) {
			f.mayBreak = true
		}
	}
}

// queued notes that the broker has a message.
func (w *world) queued(m message) {
	for _, l := range m.lines {
		f := w.book.of(l)
		if f == nil {
			continue
		}
		if f.copies++; f.queuedAt < 0 {
			f.queuedAt = w.now
			w.inTime(f)
		}
		if f.copies > mostCopies {
			w.broken("G4", "order %d of goods %d was published %d times: the queue fills faster than it drains", f.sn, f.goods, f.copies)
		}
	}
}

// fedAgain notes that the audit publishes what the queue still has.
func (w *world) fedAgain(lines []line) {
	for _, l := range lines {
		f := w.book.of(l)
		if f == nil || f.queuedAt < 0 || !w.onItsWay(l) {
			continue
		}
		if f.fedAgain++; f.fedAgain > 2 {
			w.broken("G4", "order %d of goods %d is fed again and again while the queue has it: it fills faster than it drains", l.sn, l.goods)
		}
	}
}

func (w *world) onItsWay(l line) bool {
	q := w.queueOf(l.goods)
	has := func(m message) bool { return m.goods == l.goods && slices.Contains(numbers(m.lines), l.sn) }
	return slices.ContainsFunc(q.ready, has) || slices.ContainsFunc(q.unacked, has)
}

// writtenInTime: what a consumer left behind comes again from the queue, not when the feed finds it.
func (w *world) writtenInTime(l line) {
	f := w.book.of(l)
	if f == nil || f.mayBreak || f.queuedAt < 0 || w.fault == queuePurged || w.fault == failBack || !w.healed {
		return
	}
	if from := max(f.queuedAt, w.healedAt); w.now-from > writtenBy {
		w.broken("G3", "order %d of goods %d was written %d ticks after it was in the queue", f.sn, f.goods, w.now-from)
	}
}

const (
	writtenBy  = 90
	mostCopies = 16
	relayedBy  = 55 // ticks after which what was taken is in the queue, harm and rebuilds aside
)

// inTime: what a dead API left behind is relayed soon, not when the feed finds it.
func (w *world) inTime(f *fate) {
	from := f.takenAt
	if w.healed {
		from = max(from, w.healedAt)
	} else if w.now >= w.faultAt {
		return
	}
	if w.now-from > relayedBy && !f.mayBreak {
		w.broken("G3", "order %d of goods %d was first in the queue %d ticks after it was taken", f.sn, f.goods, w.now-f.takenAt)
	}
}

// always is what holds after every step.
func (w *world) always() {
	active := make([]int, w.nGoods)
	holds := map[[2]int]int{}
	for _, r := range w.db.orders {
		if r.status.active() {
			active[r.goods] += r.q
			holds[[2]int{r.goods, r.buyer}] += r.q
		}
	}
	for g, row := range w.db.goods {
		if row.stock < 0 || row.stock+active[g] != row.total {
			w.broken("G1", "goods %d: stock %d and %d active, of %d", g, row.stock, active[g], row.total)
		}
		w.ledger(g)
	}
	for who, n := range holds {
		if n > w.limit[who[0]] {
			w.broken("G2", "buyer %d holds %d of goods %d, more than %d", who[1], n, who[0], w.limit[who[0]])
		}
		if !w.off(HoldingsInDB) && n != w.db.holdings[who] {
			w.broken("G2", "buyer %d holds %d of goods %d, and is booked with %d", who[1], n, who[0], w.db.holdings[who])
		}
	}
}

func (w *world) ledger(goods int) {
	k := w.current.goods[goods]
	if !k.loaded {
		return
	}
	units := 0
	for _, p := range k.pending {
		units += p.q
	}
	if k.avail < 0 || k.avail+k.pend+k.sold != k.total || units != k.pend {
		w.broken("G4", "goods %d in Redis: available %d, pending %d (%d by number), sold %d, of %d", goods, k.avail, k.pend, units, k.sold, k.total)
	}
}

// quiet tells whether nothing is on its way any more.
func (w *world) quiet() bool { return w.whyNotQuiet() == "" }

func (w *world) whyNotQuiet() string {
	for _, c := range w.clients {
		if !c.done {
			return fmt.Sprintf("buyer %d still asks", c.buyer)
		}
	}
	for i, q := range w.broker.queues {
		if len(q.ready)+len(q.unacked) > 0 {
			return fmt.Sprintf("queue %d has %d ready, %d unacknowledged", i, len(q.ready), len(q.unacked))
		}
	}
	if len(w.db.notGiven(w.now)) > 0 || w.broker.fresh {
		return "units are not given back"
	}
	for g, k := range w.current.goods {
		state, _ := w.current.gateOf(g, false)
		switch {
		case state != open || k.epoch != w.db.goods[g].epoch:
			return fmt.Sprintf("the gate of goods %d is not open (%d)", g, state)
		case k.lock != 0 && k.lockUntil > w.now:
			return fmt.Sprintf("goods %d is being rebuilt", g)
		case len(k.pending)+len(k.outbox) > 0:
			return fmt.Sprintf("goods %d has %d pending, %d in the outbox", g, len(k.pending), len(k.outbox))
		}
	}
	if slices.ContainsFunc(w.procs, func(p *proc) bool { return !p.dead && p.host == nil }) {
		return "something is still to come"
	}
	return ""
}

// atLast is what holds once all is calm.
func (w *world) atLast() {
	paths := map[int]int{}
	for _, r := range w.db.orders {
		if r.status == failedOrder {
			continue
		}
		if paths[r.path]++; r.path > 0 && paths[r.path] > 1 {
			w.broken("G7", "the same path %d got buyer %d two orders of goods %d", r.path, r.buyer, r.goods)
		}
	}
	for _, f := range w.book.all {
		w.kept(f)
	}
	for g, k := range w.current.goods {
		if w.book.astray[g] {
			continue // the next rebuild puts it right
		}
		row, active := w.db.goods[g], w.db.goods[g].total-w.db.goods[g].stock
		if k.avail != row.stock || k.sold != active || k.total != row.total {
			w.broken("G4", "goods %d: Redis has %d available and %d sold, MySQL %d and %d", g, k.avail, k.sold, row.stock, active)
		}
		for b := range 7 {
			if !w.off(HoldingsInDB) && k.held(b) != w.db.holdings[[2]int{g, b}] {
				w.broken("G4", "buyer %d holds %d of goods %d in Redis, %d in MySQL", b, k.held(b), g, w.db.holdings[[2]int{g, b}])
			}
		}
	}
}

// kept: a promise is a row, and a row that is no failure unless Redis had failed over.
func (w *world) kept(f *fate) {
	r := w.db.find(f.goods, f.sn)
	switch {
	case f.saidFailed && r != nil && r.status != failedOrder:
		w.broken("G5", "buyer %d was told that order %d of goods %d failed, and then otherwise", f.buyer, f.sn, f.goods)
	case f.mayBreak, f.late && w.fault.losesRedis(), w.book.astray[f.goods]:
	case !f.promised:
	case r == nil || r.buyer != f.buyer:
		w.broken("G3", "order %d of goods %d was promised to buyer %d and is not in MySQL", f.sn, f.goods, f.buyer)
	case r.status == failedOrder:
		w.broken("G5", "order %d of goods %d was promised to buyer %d and failed", f.sn, f.goods, f.buyer)
	}
	if f.queuedAt < 0 && f.promised {
		w.inTime(f)
	}
}
