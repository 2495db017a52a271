package model

// applyMoves applies stock moves to Redis, and then marks them in MySQL.
func (w *world) applyMoves(p *proc, moves []*move) {
	for _, m := range moves {
		p.step()
		if w.requeues && m.kind == fail && !w.omits(MoveLocked) {
			w.applyLocked(p, m)
			continue
		}
		if p.host.redis.release(m) == applyLater {
			continue
		}
		p.step()
		if w.db.up {
			m.applied = true
		}
	}
}

// applyLocked applies the move of a failed order in a transaction that has locked it. A requeue may
// delete such a move.
func (w *world) applyLocked(p *proc, m *move) {
	session := w.db.session
	if !w.db.up || m.applied || m.deleted || m.lockedIn == session {
		return
	}
	m.lockedIn = session
	defer func() {
		if m.lockedIn == session {
			m.lockedIn = 0
		}
	}()
	if p.host.redis.release(m) == applyLater {
		return
	}
	p.step()
	if w.db.up && w.db.session == session && w.rnd.IntN(16) != 0 {
		m.applied = true
	}
}

// runReleaser applies stock moves that their writers did not apply.
func (w *world) runReleaser(p *proc) {
	for {
		p.round(10)
		if w.db.up {
			w.db.forget()
			w.applyMoves(p, w.db.pendingMoves(w.now-10))
		}
	}
}

// runAdopter writes parked orders that the open gate of the present epoch adopts.
func (w *world) runAdopter(p *proc) {
	for {
		p.round(10)
		for g := range w.nGoods {
			if lines := w.db.parkedLines(g); w.db.up && len(lines) > 0 && !w.omits(ParkedAdopted) {
				w.writeLines(p, g, lines)
			}
		}
	}
}

// runExpirer expires unpaid orders.
func (w *world) runExpirer(p *proc) {
	for {
		p.round(10)
		for g := range w.nGoods {
			if due := w.db.due(g); w.db.up && len(due) > 0 {
				p.step()
				w.applyMoves(p, w.db.finish(p, g, due, expired))
			}
		}
	}
}

// cancel is the payment service's cancellation.
func (w *world) cancel(p *proc, l line) {
	if !w.db.up {
		return
	}
	r := w.db.find(l.goods, l.sn)
	if r == nil || r.buyer != l.buyer {
		return
	}
	w.applyMoves(p, w.db.finish(p, l.goods, []*row{r}, cancelled))
}

// pay is the payment service's payment: one guarded statement.
func (w *world) pay(l line) {
	r := w.db.find(l.goods, l.sn)
	if w.db.up && r != nil && r.status == created && r.payBy > w.now {
		r.status = paid
	}
}

// runRelay publishes the outbox, and republishes pending orders to a broker that lost its data.
func (w *world) runRelay(p *proc) {
	for {
		p.round(5)
		for g := range w.nGoods {
			w.drainOutbox(p, g, relayAfter)
		}
		if w.broker.fresh && w.broker.up {
			w.republishAll(p)
		}
	}
}

// republishAll republishes all pending orders to a broker that lost its data.
func (w *world) republishAll(p *proc) {
	for g := range w.nGoods {
		if !p.host.redis.answers() || !w.republish(p, g) {
			return
		}
	}
	w.broker.fresh = false
}

// drainOutbox publishes entries older than age ticks. It returns false where one was not confirmed.
func (w *world) drainOutbox(p *proc, goods, age int) bool {
	for {
		p.step()
		s := p.host.redis
		if !s.answers() {
			return false
		}
		var list []entry
		for _, e := range s.goods[goods].outbox {
			if e.at <= s.time()-age || e.at > s.time() && !w.omits(OutboxByAge) {
				list = append(list, e)
			}
		}
		if len(list) == 0 {
			return true
		}
		by := w.now + publishDeadline
		for _, e := range list {
			if w.publish(p, goods, message{lines: e.lines, goods: goods}, by) != confirmed {
				return false
			}
			p.step()
			w.confirm(p.host.redis, goods, e.id)
		}
	}
}

// republish publishes all pending orders.
func (w *world) republish(p *proc, goods int) bool {
	p.step()
	var lines []line
	for _, sn := range sorted(p.host.redis.goods[goods].pending) {
		lines = append(lines, p.host.redis.goods[goods].pending[sn].line)
	}
	return w.publishLines(p, goods, lines)
}

// publishLines publishes lines in random batches. It returns false where one was not confirmed.
func (w *world) publishLines(p *proc, goods int, lines []line) bool {
	for len(lines) > 0 {
		n := min(1+w.rnd.IntN(3), len(lines)) // other batches than before
		m := message{lines: lines[:n], goods: goods}
		if w.publish(p, goods, m, w.now+publishDeadline) != confirmed {
			return false
		}
		lines = lines[n:]
	}
	return true
}

// runReconciler compares Redis with MySQL by order number.
func (w *world) runReconciler(p *proc) {
	for {
		p.round(reconcileRound)
		for g := range w.nGoods {
			w.reconcile(p, g)
		}
	}
}

// dueForRepublishing reports whether the age of an order has just passed the republish age, twice
// that, four times, and so on.
func (w *world) dueForRepublishing(age int) bool {
	for at := republishAge; at <= age; at *= 2 {
		if age-at <= 3*reconcileRound/2 {
			return true
		}
	}
	return w.omits(RepublishAge)
}

// apart is the age of an order of the past, or of a clock that has been set back since.
func apart(now, at int) int { return max(now-at, at-now) }

// reconcile settles pending orders that MySQL has, and republishes old ones that it lacks.
func (w *world) reconcile(p *proc, goods int) {
	s := p.host.redis
	g, k := s.gateOf(goods, false)
	if g != open || len(k.pending) == 0 {
		return
	}
	patient := tolerance
	if w.omits(RepublishAge) {
		patient = 0
	}
	var asked []pendingOrder
	for _, sn := range sorted(k.pending) {
		if pd := k.pending[sn]; apart(s.time(), pd.at) > patient {
			asked = append(asked, pd)
		}
	}
	p.step()
	if !w.db.up {
		return
	}
	var written []int
	var absent, final []line
	for _, pd := range asked {
		r := w.db.find(goods, pd.sn)
		switch {
		case unwritten(r) && w.dueForRepublishing(s.time()-pd.at):
			absent = append(absent, pd.line)
		case unwritten(r):
		case w.db.settles(r):
			written = append(written, pd.sn)
		default:
			final = append(final, pd.line)
		}
	}
	p.step()
	if w.requeues && len(written)+len(final) > 0 && w.rnd.IntN(8) == 0 {
		p.sleep(w.rnd.IntN(2 * returnAfter)) // and an operator requeues an order
	}
	s.settle(goods, written)
	if w.requeues && !w.omits(UnitsOfFinal) {
		w.returnUnits(p, goods, final)
	}
	w.noteRepublished(absent)
	w.publishLines(p, goods, absent)
}
