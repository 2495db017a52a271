package model

// queryOrder is the order query, for the buyer of a promised order.
func (w *world) queryOrder(p *proc, l line) {
	s := p.host.redis
	p.step()
	if !s.answers() {
		return
	}
	if _, pending := s.goods[l.goods].pending[l.sn]; pending {
		return // "queued"
	}
	p.step()
	if !w.db.up || w.db.find(l.goods, l.sn) != nil {
		return // the row's status
	}
	p.step()
	if w.rnd.IntN(3) == 0 {
		p.sleep(w.rnd.IntN(40)) // long enough for a rebuild in between
	}
	g, k := s.gateOf(l.goods, false)
	if g != open {
		return // 503
	}
	if l.epoch < k.epoch {
		if !w.omits(SecondRead) {
			p.step()
			if !w.db.up || w.db.find(l.goods, l.sn) != nil {
				return
			}
		}
		if !w.omits(SecondRead) && !w.omits(TombstoneBeforeAnswer) {
			w.db.insertTombstone(l)
		}
		w.logf("buyer %d is answered that order %d of goods %d failed", l.buyer, l.sn, l.goods)
		w.records.of(l).answeredFailed = true
		return
	}
	if e := w.records.of(l); !e.mayFail {
		w.violated("G5", "buyer %d was promised order %d of goods %d, and the answer is 404",
			l.buyer, l.sn, l.goods)
	}
}
