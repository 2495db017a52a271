package model

import "slices"

// In a split sale the two goods are its buckets, and units go from one to the other (order.Mover, order.Steward).

const (
	moverEnds  = 220 // ticks: then nobody asks any more, and what is in the air comes down
	stewardAge = 20  // 2 s
	moverLife  = 2 * publishDeadline
)

// cut is a row of stock_cuts that names who is to have the units.
type cut struct {
	id, from, epoch, q, to, at int
	ended                      bool
}

// hire adds to a worker what a split sale wants of it.
func (w *world) hire(h *host) {
	if !w.split {
		return
	}
	w.spawn(h, w.rnd.IntN(10), w.move)
	w.spawn(h, w.rnd.IntN(10), w.steward)
}

// move is Mover.Run, which carries what nobody asked for as gladly as what somebody did.
func (w *world) move(p *proc) {
	for w.now < moverEnds {
		p.round(6)
		from := w.rnd.IntN(w.nGoods)
		if g, k := p.host.redis.gateOf(from, false); g == open && k.avail > 0 {
			w.carry(p, cut{id: w.id(), from: from, epoch: k.epoch, q: 1 + w.rnd.IntN(k.avail), to: 1 - from})
		}
	}
}

// carry is carrier.carry: the row first, then Redis, then both rows in one transaction, then the other's Redis.
func (w *world) carry(p *proc, c cut) {
	by := w.now + moverLife
	p.step()
	if !w.db.up {
		return
	}
	c.at = w.now
	if !w.off(TransferWritten) {
		w.db.cuts = append(w.db.cuts, &c)
	}
	for w.now < by && !w.endTransfer(p, &c) {
		p.sleep(1 + w.rnd.IntN(3))
	}
}

// steward is Steward.Run.
func (w *world) steward(p *proc) {
	for {
		p.round(10)
		for _, c := range slices.Clone(w.db.cuts) {
			if !c.ended && w.now-c.at > stewardAge {
				w.endTransfer(p, c)
			}
		}
	}
}

// endTransfer is finishCut; false where it is to be tried again.
func (w *world) endTransfer(p *proc, c *cut) bool {
	p.step()
	said := p.host.redis.carryOff(c)
	if said == givenLater {
		return false
	}
	p.step()
	if !w.db.up {
		return false
	}
	moves := w.db.endTransfer(c, said)
	w.say("%s ends the transfer of %d from goods %d: Redis said %d, %d moves", p.host.name, c.q, c.from, said, len(moves))
	w.giveMoves(p, moves)
	return true
}

// carryOff is release.lua for the first half of a transfer. What was refused once is refused for the rest of the epoch.
func (s *server) carryOff(c *cut) given {
	g, k := s.gateOf(c.from, false)
	switch {
	case g != open, k.epoch < c.epoch:
		return givenLater
	case k.epoch > c.epoch:
		return covered
	case k.moves[c.id]:
		return givenBefore
	case k.moves[-c.id]:
		return tooMuch
	}
	s.writing()
	if k.avail < c.q {
		k.moves[-c.id] = true
		return tooMuch
	}
	k.moves[c.id] = true
	k.avail, k.total = k.avail-c.q, k.total-c.q
	s.w.book.letGo(s.w, s, c.from)
	return givenNow
}

// endTransfer is sqlstore's, one transaction over both rows.
func (m *mysql) endTransfer(c *cut, said given) []*move {
	if c.ended && !m.w.off(TransferEndsOnce) {
		return nil
	}
	m.w.dirty, c.ended = true, true
	from, to := &m.goods[c.from], &m.goods[c.to]
	switch {
	case said == tooMuch:
		return nil
	case (from.epoch != c.epoch || said == covered) && !m.w.off(TransferOfOneEpoch):
		return nil // the epoch was loaded with the units in it
	case from.stock < c.q:
		return []*move{m.newRaise(m.w.id(), c.from, c.q)}
	}
	from.stock, from.total, from.version = from.stock-c.q, from.total-c.q, from.version+1
	to.stock, to.total, to.version = to.stock+c.q, to.total+c.q, to.version+1
	return []*move{m.newRaise(c.id, c.to, c.q)}
}

// newRaise is a move that puts units on sale.
func (m *mysql) newRaise(id, goods, q int) *move {
	mv := &move{id: id, goods: goods, epoch: m.goods[goods].epoch, q: q, raise: true, at: m.w.now}
	m.moves = append(m.moves, mv)
	return mv
}

// carried checks that transfers made and lost no unit.
func (w *world) carried() {
	total := 0
	for _, g := range w.db.goods {
		total += g.total
	}
	if total != w.total {
		w.broken("G1", "%d units were put up, and MySQL has %d", w.total, total)
	}
}

func (m *mysql) inTheAir() bool {
	return slices.ContainsFunc(m.cuts, func(c *cut) bool { return !c.ended })
}
