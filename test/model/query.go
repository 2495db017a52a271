package model

// queryOrder is the order query of a buyer. The order may not be reserved yet.
func (w *world) queryOrder(p *proc, l line) {
	s := p.host.redis
	p.step()
	if !s.answers() {
		return
	}
	k := s.goods[l.goods]
	if _, pending := k.pending[l.sn]; pending {
		return // "queued"
	}
	p.step()
	if !w.db.up || w.db.find(l.goods, l.sn) != nil {
		return // the row's status
	}
	p.step()
	p.lag(3, 40) // long enough for a rebuild in between
	g, k := s.gateOf(l.goods, false)
	epoch := k.epoch
	lostFrom := l.issued + w.pathLife + publishDeadline + lostMargin
	if g != open || s.time() < lostFrom && !w.omits(LostAfterExpiry) {
		return // 503, or "queued"
	}
	if !w.omits(SecondRead) {
		p.step()
		if _, pending := s.goods[l.goods].pending[l.sn]; pending || !s.answers() {
			return
		}
		p.step()
		if g, k = s.gateOf(l.goods, false); g != open || k.epoch != epoch {
			return
		}
		p.step()
		p.lag(8, 40)
		if !w.db.up {
			return
		}
		if !w.omits(TombstoneBeforeAnswer) && !w.db.insertTombstone(l, epoch) {
			return
		}
	}
	w.logf("buyer %d is answered that order %d of goods %d failed", l.buyer, l.sn, l.goods)
	w.records.add(l).answeredFailed = true
}
