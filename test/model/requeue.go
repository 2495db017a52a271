package model

import "slices"

const (
	requeueDeadline = 50  // 5 s
	returnAfter     = 150 // 1 minute
)

// refusal is how MySQL refuses an order. It is the fault of schedules with requeues.
type refusal int

const (
	accepted refusal = iota
	refusedAsCreated
	refusedAnyRow // until the table is repaired
)

// deadLetter is a failed order, or one without a row, that waits for an operator.
type deadLetter struct{ line }

// refuses reports whether MySQL refuses an order as created.
func (m *mysql) refuses(l line) bool {
	return l.refusal == refusedAsCreated || m.refusesAny(l)
}

// refusesAny reports whether MySQL refuses every row of an order.
func (m *mysql) refusesAny(l line) bool { return l.refusal == refusedAnyRow && !m.repaired }

// refusalOf decides whether MySQL refuses an order that is being reserved. Orders without any row
// are written when the reconciler publishes them again, by Redis' clock.
func (w *world) refusalOf(l line) refusal {
	f := w.records.of(l)
	switch {
	case f != nil && f.server != nil:
		return f.refusal // Redis had lost it
	case !w.requeues || w.rnd.IntN(4) > 0:
		return accepted
	}
	if w.clockStep == 0 && w.rnd.IntN(3) == 0 {
		return refusedAnyRow
	}
	return refusedAsCreated
}

// addDeadLetter keeps an order for operators. Some of them act at about the same time, and some
// while the sale is rebuilt.
func (m *mysql) addDeadLetter(l line) {
	if !m.w.requeues || l.bad {
		return
	}
	d := &deadLetter{l}
	m.deadLetters = append(m.deadLetters, d)
	for range 1 + m.w.rnd.IntN(3) {
		at := m.w.rnd.IntN(1 + m.w.rnd.IntN(150))
		for range 1 + m.w.rnd.IntN(2) {
			m.w.onAPI(at+m.w.rnd.IntN(10), func(p *proc) { m.w.requeue(p, d, 3) })
		}
	}
	if m.w.rnd.IntN(8) == 0 {
		m.w.onAPI(m.w.rnd.IntN(60), func(p *proc) { m.w.discard(p, d) })
	}
	if m.w.rnd.IntN(4) == 0 {
		m.w.rebuildManually(m.w.rnd.IntN(100))
	}
}

// keepMessage keeps the dead letter of an order of which MySQL refuses every row, once. The order
// is parked no longer.
func (m *mysql) keepMessage(l line) {
	if !slices.ContainsFunc(m.deadLetters, func(d *deadLetter) bool { return d.line == l }) {
		m.addDeadLetter(l)
	}
	if r := m.find(l.goods, l.sn); r != nil && r.status == parked {
		delete(m.bySn, [2]int{l.goods, l.sn})
		m.orders = slices.DeleteFunc(m.orders, func(o *row) bool { return o == r })
	}
}

// failParked writes the parked orders that MySQL refuses as failed, or keeps their messages.
func (m *mysql) failParked(goods, token int) {
	for _, l := range m.parkedLines(goods) {
		switch {
		case !m.refuses(l) || token != m.goods[goods].token:
		case m.refusesAny(l):
			m.keepMessage(l)
		default:
			m.fail(l)
		}
	}
}

// movesOf lists the moves of an order that Redis has not confirmed.
func (m *mysql) movesOf(l line) []*move {
	return slices.DeleteFunc(slices.Clone(m.moves), func(mv *move) bool {
		return mv.applied || mv.goods != l.goods || mv.sn != l.sn
	})
}

// planReturn writes the move that returns the units which Redis is about to take for a failed
// order. It returns nil where the order may not be requeued, or not now.
func (m *mysql) planReturn(l line) *move {
	r := m.find(l.goods, l.sn)
	noRow := unwritten(r)
	switch {
	case noRow && !m.w.omits(RequeueNeedsRow):
		return nil
	case !noRow && (r.status != failedOrder || r.q != l.q || r.tombstone) &&
		!m.w.omits(RequeueOfFailed):
		return nil
	case len(m.movesOf(l)) > 0 && !m.w.omits(FailedMovesFirst):
		return nil
	}
	mv := m.newMove(l, fail)
	mv.at += returnAfter
	if m.w.omits(ReturnPlanned) {
		m.moves = m.moves[:len(m.moves)-1]
	}
	return mv
}

// settles reports whether a pending order is settled by its row. Where the reconciler does not
// return the units of orders that have ended, they count as sold.
func (m *mysql) settles(r *row) bool {
	return r.status.active() || r.status != failedOrder && !m.w.requeues
}

// returnUnits returns the units that Redis has pending for orders that are final. It takes part in
// schedules with requeues only: elsewhere it would repair what TombstoneReleases prevents.
func (w *world) returnUnits(p *proc, goods int, lines []line) {
	for _, l := range lines {
		p.step()
		if !w.db.writable(goods) {
			return
		}
		w.db.returnUnits(l)
	}
}

// returnUnits writes the move of an order that is final, and whose units Redis has pending.
func (m *mysql) returnUnits(l line) {
	r := m.find(l.goods, l.sn)
	if len(m.movesOf(l)) == 0 && (!r.status.active() || m.w.omits(ReturnOfFinal)) {
		m.newMove(l, fail)
	}
}

// restoring is the transaction that makes a failed order created. From its first statements to its
// commit it locks the goods row and the planned return.
type restoring struct {
	d                   *deadLetter
	undo                *move
	session             int
	over, done, refused bool
}

// lock begins a transaction that others of its goods wait for.
func (m *mysql) lock(r *restoring) {
	r.session, r.undo.lockedIn, m.goods[r.d.goods].lockedIn = m.session, m.session, m.session
}

func (m *mysql) locked(goods int) bool { return m.goods[goods].lockedIn == m.session }

// writable reports whether a transaction can have the lock of a goods row.
func (m *mysql) writable(goods int) bool {
	return m.up && !m.locked(goods)
}

// commit ends a transaction, unless MySQL has been down since it began.
func (m *mysql) commit(r *restoring) {
	r.over = true
	if r.session != m.session {
		return
	}
	m.w.dirty = true
	r.undo.lockedIn, m.goods[r.d.goods].lockedIn = 0, 0
	g, o := &m.goods[r.d.goods], m.find(r.d.goods, r.d.sn)
	switch {
	case r.undo.applied && !m.w.omits(RestoreRemovesReturn):
		return // try again
	case o == nil || o.status != failedOrder && !o.status.active():
		r.refused = true
		return
	case !slices.Contains(m.deadLetters, r.d) && !o.status.active() && !m.w.omits(RestoreUndiscarded):
		r.refused = true
		return
	case o.status.active():
	case g.epoch != r.undo.epoch && !m.w.omits(RestoreInEpoch):
		return // try again
	case o.tombstone || m.holdings[[2]int{o.goods, o.buyer}]+o.q > g.maxLimit || o.q > g.stock:
		r.refused = true
		return
	default:
		o.status, o.payBy, o.epoch = created, m.w.now+m.w.payTime, g.epoch
		m.hold(o.goods, o.buyer, o.q)
		m.changeStock(o.goods, g.stock, -o.q)
		m.w.requeued(r.d)
	}
	m.deadLetters = slices.DeleteFunc(m.deadLetters, func(d *deadLetter) bool { return d == r.d })
	if !m.w.omits(RestoreRemovesReturn) {
		m.moves = slices.DeleteFunc(m.moves, func(mv *move) bool { return mv == r.undo })
		r.undo.deleted = true
	}
	r.done = true
}

// nap separates two steps of an operator's request. Its process may sleep or die there.
func (p *proc) nap() {
	p.step()
	switch p.w.rnd.IntN(16) {
	case 0:
		panic(killed{})
	case 1, 2:
		p.sleep(p.w.rnd.IntN(1 + p.w.rnd.IntN(2*returnAfter)))
	}
}

// requeue is an operator who requeues a dead letter, and tries again where it may help.
func (w *world) requeue(p *proc, d *deadLetter, tries int) {
	by := w.now + requeueDeadline
	if w.omits(RequeueDeadline) {
		by = 1 << 30
	}
	if w.db.up && !slices.Contains(w.db.deadLetters, d) {
		return // not found
	}
	if !w.tryRequeue(p, d, by) && tries > 1 {
		w.onAPI(w.rnd.IntN(40), func(p *proc) { w.requeue(p, d, tries-1) })
	}
}

// tryRequeue is one request. It returns false where its outcome is unknown or it did nothing.
func (w *world) tryRequeue(p *proc, d *deadLetter, by int) bool {
	p.nap()
	if !w.omits(FailedMovesFirst) && !w.releaseFirst(p, d, by) {
		return false
	}
	p.nap()
	if w.now > by || !w.db.writable(d.goods) {
		return false
	}
	undo := w.db.planReturn(d.line)
	if undo == nil {
		return false
	}
	p.nap()
	if w.now > by && w.rnd.IntN(2) == 0 {
		return false // otherwise the call is on its way, and Redis receives it late
	}
	took, g := p.host.redis.adopt(d.goods, undo.epoch, []line{d.line}, true)
	if g != open || w.now > by {
		return false
	}
	w.logf("%s takes units of order %d of goods %d again: %v", p.host.name, d.sn, d.goods, took)
	p.nap()
	switch took[d.sn] {
	case d.q:
		return w.restore(p, d, undo, by)
	case 0:
		w.applyMoves(p, []*move{undo})
	}
	return true
}

// releaseFirst applies the moves of the failed order, apart from a planned return of another
// request in the epoch that this one has read.
func (w *world) releaseFirst(p *proc, d *deadLetter, by int) bool {
	epoch := w.db.goods[d.goods].epoch
	for range 2 {
		p.nap()
		if w.now > by || !w.db.up {
			return false
		}
		moves := w.db.movesOf(d.line)
		if len(moves) == 0 {
			return true
		}
		w.applyMoves(p, slices.DeleteFunc(moves, func(m *move) bool {
			return m.at > w.now && m.epoch >= epoch
		}))
	}
	return false
}

// restore makes the order created. Once its commit is sent, it takes as long as MySQL needs,
// whatever becomes of the request.
func (w *world) restore(p *proc, d *deadLetter, undo *move, by int) bool {
	for !w.db.writable(d.goods) || undo.lockedIn == w.db.session {
		p.sleep(1)
		if w.now > by {
			return false
		}
	}
	if w.now > by {
		return false
	}
	tx := &restoring{d: d, undo: undo}
	w.db.lock(tx)
	ticks := 0
	if w.rnd.IntN(4) == 0 {
		ticks = w.rnd.IntN(returnAfter + requeueDeadline)
	}
	w.later(ticks, func() { w.db.commit(tx) })
	for !tx.over {
		p.sleep(1)
		if w.now > by {
			return false
		}
	}
	switch {
	case tx.refused:
		w.applyMoves(p, []*move{undo})
	case tx.done:
		p.nap()
		p.host.redis.settle(d.goods, []int{d.sn})
	}
	return tx.refused || tx.done
}

// requeued records that an order is created after it had failed. Its buyer may cancel it.
func (w *world) requeued(d *deadLetter) {
	w.logf("order %d of goods %d is requeued", d.sn, d.goods)
	f := w.records.add(d.line)
	if f.requeued = true; f.discarded {
		w.violated("G5", "order %d of goods %d was discarded and requeued", d.sn, d.goods)
	}
	if w.rnd.IntN(2) == 0 {
		w.onAPI(w.rnd.IntN(60), func(p *proc) { w.cancel(p, d.line) })
	}
}

// discard is an operator who deletes a dead letter.
func (w *world) discard(p *proc, d *deadLetter) {
	p.step()
	if !w.db.writable(d.goods) || !slices.Contains(w.db.deadLetters, d) {
		return
	}
	w.logf("the dead letter of order %d of goods %d is discarded", d.sn, d.goods)
	w.db.deadLetters = slices.DeleteFunc(w.db.deadLetters,
		func(o *deadLetter) bool { return o == d })
	others := slices.ContainsFunc(w.db.deadLetters,
		func(o *deadLetter) bool { return o.goods == d.goods && o.sn == d.sn })
	if f := w.records.of(d.line); f != nil && !others && !unwritten(w.db.find(d.goods, d.sn)) {
		f.discarded = true
	}
}
