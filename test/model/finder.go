package model

// find is Finder.Find, for a buyer who was promised this order.
func (w *world) find(p *proc, l line) {
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
		return // what the row says is true
	}
	p.step()
	if w.rnd.IntN(3) == 0 {
		p.sleep(w.rnd.IntN(40)) // no deadline of this call is short enough to rule out a rebuild in between
	}
	g, k := s.gateOf(l.goods, false)
	if g != open {
		return // "ask again later"
	}
	if l.epoch < k.epoch {
		if !w.off(LookAgain) {
			p.step()
			if !w.db.up || w.db.find(l.goods, l.sn) != nil {
				return
			}
		}
		if !w.off(LookAgain) && !w.off(TombBeforeWord) {
			w.db.entomb(l)
		}
		w.say("buyer %d is told that order %d of goods %d failed", l.buyer, l.sn, l.goods)
		w.book.of(l).saidFailed = true
		return
	}
	if e := w.book.of(l); !e.mayBreak {
		w.broken("G5", "buyer %d, who was promised order %d of goods %d, is told that there is none", l.buyer, l.sn, l.goods)
	}
}
