package model

import (
	"maps"
	"slices"
)

func sorted[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }

// createSale acts as a merchant that repeats the request until the sale is open.
func (w *world) createSale(goods int) {
	if w.db.goods[goods].epoch > 0 {
		return
	}
	if h := pick(w.rnd, w.apis); h.alive {
		w.spawn(h, 0, func(p *proc) { w.openFirst(p, goods) })
	}
	w.later(20, func() { w.createSale(goods) })
}

// openFirst loads the first epoch, which takes no lock.
func (w *world) openFirst(p *proc, goods int) {
	if w.openEpoch(p, goods, 0) {
		w.logf("%s opened goods %d", p.host.name, goods)
	}
}

// openEpoch is the opener: it reads Redis' clock, begins an epoch in MySQL, and loads it.
func (w *world) openEpoch(p *proc, goods, token int) bool {
	p.step()
	if !p.host.redis.answers() {
		return false
	}
	now := p.host.redis.time()
	if w.omits(LoadByRedisClock) {
		now = w.now + p.host.skew
	}
	p.step()
	if !w.db.writable(goods) {
		return false
	}
	if slices.ContainsFunc(w.db.parkedLines(goods), w.db.refuses) && !w.omits(ParkedRefused) {
		w.db.failParked(goods, token)
		p.step()
	}
	snap, ok := w.db.beginEpoch(goods, token, now)
	if !ok {
		return false
	}
	w.logf("%s begins epoch %d of goods %d: %d of %d left",
		p.host.name, snap.epoch, goods, snap.stock, snap.total)
	p.sleep(w.rnd.IntN(1 + w.rnd.IntN(12))) // staging takes time with many buyers
	if !w.stage(p, goods, &snap) || !p.host.redis.load(goods, snap) {
		return false
	}
	s := p.host.redis
	if !w.failsOver {
		return true
	}
	replid := s.replid // the load's answer
	p.step()
	now = s.time()
	p.step()
	p.lag(8, 100)
	if !w.db.writable(goods) || !w.db.recordOpening(goods, token, snap.epoch, replid) {
		return false
	}
	p.step()
	p.lag(8, 100)
	return s.open(goods, snap.epoch, now)
}

// stage stages the buyers of a snapshot, in some schedules one after another: the client may talk
// to another Redis from one to the next. After the first one it reads the terms again. The opener
// does so after the last one, which permits less.
func (w *world) stage(p *proc, goods int, snap *snapshot) bool {
	for i, buyer := range sorted(snap.buyers) {
		if w.stagesInSteps {
			p.sleep(w.rnd.IntN(6))
		}
		if !p.host.redis.stage(goods, snap.epoch, buyer, snap.buyers[buyer]) {
			return false
		}
		if i == 0 && !w.unchanged(goods, snap) {
			return false
		}
	}
	return len(snap.buyers) > 0 || w.unchanged(goods, snap)
}

// unchanged reports whether MySQL still has the terms of a snapshot, and updates its version:
// orders that ended since have raised that of the row.
func (w *world) unchanged(goods int, snap *snapshot) bool {
	row := w.db.goods[goods]
	snap.version = row.version
	return w.db.up && row.closed == snap.closed && row.limit == snap.limit
}

// runRenewer renews the openings of the Redis that this host uses. MySQL lists them. The time
// counts from before MySQL's answer.
func (w *world) runRenewer(p *proc) {
	for {
		p.round(10)
		s := p.host.redis
		if !s.answers() {
			continue
		}
		replid, now := s.replid, s.time()
		p.step()
		p.lag(16, 100)
		if !w.db.up {
			continue
		}
		open := w.db.openOn(replid)
		p.step()
		p.lag(16, 100)
		if w.omits(OpeningFromBefore) {
			now = s.time()
		}
		for _, goods := range sorted(open) {
			s.renew(goods, open[goods], now)
		}
	}
}

// runRebuilder rebuilds the sales that Redis has lost.
func (w *world) runRebuilder(p *proc) {
	for {
		p.round(4)
		for g := range w.nGoods {
			if w.needsRebuild(p.host, g) {
				w.rebuild(p, g)
			}
		}
	}
}

// needsRebuild reports whether Redis lacks the sale's current epoch.
func (w *world) needsRebuild(h *host, goods int) bool {
	epoch := w.db.goods[goods].epoch
	if epoch == 0 || !w.db.up {
		return false
	}
	g, k := h.redis.gateOf(goods, false)
	switch g {
	case missing, leaseGone, shut:
		return true
	case open:
		return k.epoch < epoch
	case openingOver: // the clients of a replaced master notice it meanwhile
		row := w.db.goods[goods]
		over := h.redis.time() - k.openUntil
		return (over < 0 || over >= foreignFor*openFor) &&
			(row.ending || row.openedOn != h.redis.replid)
	}
	return false
}

// rebuild takes the lock and rebuilds one sale.
func (w *world) rebuild(p *proc, goods int) {
	p.step()
	holder := w.id()
	if w.db.goods[goods].epoch == 0 || !p.host.redis.tryLock(goods, holder, lockLife) {
		return
	}
	if w.rebuildLocked(p, goods, holder) {
		w.logf("%s rebuilt goods %d", p.host.name, goods)
	}
	p.step()
	p.host.redis.unlock(goods, holder)
}

// rebuildLocked drains the old epoch until MySQL has every reservation, and loads a new one. Each
// drain has a fencing token of its own.
func (w *world) rebuildLocked(p *proc, goods, holder int) bool {
	for n := 1; ; n++ {
		p.step()
		if !w.db.writable(goods) {
			return false
		}
		inRedis := p.host.redis.goods[goods].epoch
		token, epoch := w.db.nextToken(goods), w.db.goods[goods].epoch
		missing, ok := w.shutAndDrain(p, goods, holder, token, max(epoch, inRedis))
		if !ok {
			w.logf("%s gives up its rebuild of goods %d", p.host.name, goods)
			return false
		}
		if n == maxDrains && !w.failAll(p, goods, missing) {
			return false
		}
		if n == maxDrains || len(missing) == 0 || w.omits(MissingDrainedAgain) {
			return w.openEpoch(p, goods, token)
		}
		w.logf("%s drains goods %d again: %v are missing", p.host.name, goods, numbers(missing))
		p.host.redis.extendLock(goods, holder, lockLife)
	}
}

// shutAndDrain shuts the gate, and brings the reservations of the old epoch into MySQL. It returns
// those that MySQL still lacks. epoch is the newest one that MySQL or Redis had as the token was
// taken.
func (w *world) shutAndDrain(p *proc, goods, holder, token, epoch int) ([]line, bool) {
	p.step() // MySQL's answer arrives
	if !w.db.up {
		return nil, false
	}
	p.step()
	s := p.host.redis
	if !s.answers() {
		return nil, false
	}
	if !s.shutFor(goods, epoch) {
		return nil, false
	}
	w.logf("%s shuts goods %d for a rebuild, token %d", p.host.name, goods, token)
	if !w.endOpening(p, goods, holder, token, s.replid) || !w.drain(p, goods, token) {
		return nil, false
	}
	return w.missing(p, goods)
}

// missing lists the pending orders without a row: the broker may have lost them before the barrier.
func (w *world) missing(p *proc, goods int) (lines []line, ok bool) {
	if !w.harder {
		return nil, true
	}
	p.step()
	s := p.host.redis
	if !s.answers() {
		return nil, false
	}
	pending := s.goods[goods].pending
	sns := sorted(pending)
	p.step()
	for _, sn := range sns {
		if pd, still := pending[sn]; still && w.db.find(goods, sn) == nil {
			lines = append(lines, pd.line)
		}
	}
	return lines, w.db.up
}

// endOpening ends the opening that MySQL has of a sale. If another Redis has it than the one whose
// gate this rebuild shut, the rebuild waits until it is over there, and records that.
func (w *world) endOpening(p *proc, goods, holder, token, shut int) bool {
	if !w.failsOver || w.omits(OpeningInMySQL) {
		return true
	}
	p.step()
	if !w.db.writable(goods) {
		return false
	}
	epoch := w.db.goods[goods].epoch
	on, ok := w.db.endOpening(goods, token)
	if ok && on != 0 && on != shut && !w.omits(OpeningAwaited) {
		p.host.redis.extendLock(goods, holder, openFor+openMargin)
		p.sleep(p.host.ticks(openFor + openMargin))
		return w.db.writable(goods) && w.db.recordOpening(goods, token, epoch, 0)
	}
	return ok
}

// drain brings every reservation of the old epoch into MySQL.
func (w *world) drain(p *proc, goods, token int) bool {
	if !w.omits(BarrierAfterDeadline) {
		p.sleep(publishDeadline)
	}
	if !w.drainOutbox(p, goods, 0) {
		return false
	}
	if !w.omits(RepublishBeforeBarrier) && !w.republish(p, goods) {
		return false
	}
	switch {
	case w.omits(Barrier):
		return true
	case w.omits(BarrierThroughQueue):
		return w.awaitEmptyQueue(p, goods)
	}
	return w.awaitBarrier(p, goods, token)
}

// awaitBarrier publishes the barrier, and waits until a consumer has recorded it in MySQL.
func (w *world) awaitBarrier(p *proc, goods, token int) bool {
	if w.harder && w.rnd.IntN(8) == 0 {
		p.sleep(w.rnd.IntN(30)) // and the broker loses its data
	}
	by := w.now + barrierPatience
	barrier := message{barrier: true, goods: goods, token: token}
	if w.publish(p, goods, barrier, by) != confirmed {
		return false
	}
	for w.now < by {
		p.sleep(1 + w.rnd.IntN(2))
		if w.db.up && w.db.barriers[[2]int{goods, token}] {
			return true
		}
	}
	return false
}

// awaitEmptyQueue replaces the barrier where the schedule leaves out BarrierThroughQueue.
func (w *world) awaitEmptyQueue(p *proc, goods int) bool {
	for by := w.now + barrierPatience; w.now < by; p.sleep(1) {
		if q := w.queueOf(goods); !q.gone && len(q.ready) == 0 {
			return true
		}
	}
	return false
}
