package model

import "slices"

// addMerchant schedules changes of a goods, and in most schedules its close.
func (w *world) addMerchant(goods int) {
	for range w.rnd.IntN(4) {
		w.onAPI(w.rnd.IntN(200), func(p *proc) { w.amend(p, goods) })
	}
	if w.harder {
		for range w.rnd.IntN(4) {
			w.onAPI(w.rnd.IntN(200), func(p *proc) { w.cutStock(p, goods) })
		}
	}
	if w.rnd.IntN(4) > 0 {
		w.onAPI(20+w.rnd.IntN(200), func(p *proc) { w.closeSale(p, goods) })
	}
}

// onAPI runs a request on some API after a delay in ticks, unless that API is dead then.
func (w *world) onAPI(ticks int, request func(*proc)) {
	w.later(ticks, func() {
		if h := pick(w.rnd, w.apis); h.alive {
			w.spawn(h, 0, request)
		}
	})
}

// amend is a PATCH: it changes the limit, and may add units by a stock move.
func (w *world) amend(p *proc, goods int) {
	g := &w.db.goods[goods]
	if !w.db.writable(goods) || g.epoch == 0 || g.closed {
		return
	}
	w.dirty = true
	g.limit, g.version = 1+w.rnd.IntN(3), g.version+1
	g.maxLimit = max(g.maxLimit, g.limit)
	w.logf("goods %d is amended: version %d, limit %d", goods, g.version, g.limit)
	var moves []*move
	if units := w.rnd.IntN(3); units > 0 {
		g.stock, g.total = g.stock+units, g.total+units
		moves = append(moves, w.db.newMove(line{goods: goods, q: units}, raise))
	}
	w.applyMoves(p, moves)
	w.syncSale(p, goods)
}

// cutStock is a PATCH that withdraws unsold units. Only Redis knows how many are unsold.
func (w *world) cutStock(p *proc, goods int) {
	g := &w.db.goods[goods]
	units := 1 + w.rnd.IntN(2)
	if !w.db.writable(goods) || g.epoch == 0 || g.closed {
		return
	}
	w.logf("%d units of goods %d are to be withdrawn", units, goods)
	if w.omits(CutAsksRedis) {
		if g.stock >= units {
			g.stock, g.total, g.version = g.stock-units, g.total-units, g.version+1
			w.applyMoves(p, []*move{w.db.newMove(line{goods: goods, q: -units}, raise)})
		}
		return
	}
	w.finishCut(p, w.db.beginCut(goods, units))
}

// finishCut takes the units of a cut from Redis, and ends the cut by Redis' answer. Any number of
// processes may do so.
func (w *world) finishCut(p *proc, c *move) {
	for range 3 {
		p.step()
		asked := *c // as this process has read it
		result := p.host.redis.release(&asked)
		if result == applyLater {
			return
		}
		p.step()
		p.lag(4, 100) // and a rebuild begins an epoch
		if !w.db.writable(c.goods) {
			return
		}
		w.logf("cut %d of goods %d: result %d of epoch %d", c.id, c.goods, result, asked.epoch)
		w.applyMoves(p, w.db.endCut(c, asked.epoch, result))
		if c.applied {
			return
		}
	}
}

// closeSale closes a sale. Once it is answered nothing may be reserved. The merchant repeats it
// until then.
func (w *world) closeSale(p *proc, goods int) {
	if g := &w.db.goods[goods]; w.db.writable(goods) && g.epoch > 0 {
		if !g.closed {
			g.closed, g.version = true, g.version+1
			w.logf("goods %d is closed: version %d", goods, g.version)
		}
		if w.syncSale(p, goods) && w.closedWhereOpen(p, goods) {
			w.logf("the close of goods %d is answered", goods)
			w.records.closed[goods] = true
			return
		}
	}
	w.onAPI(10+w.rnd.IntN(10), func(p *proc) { w.closeSale(p, goods) })
}

// closedWhereOpen reports whether the Redis that MySQL has open for a sale has its close. Another
// one may sell without knowing that it was replaced, or know nothing of the sale.
func (w *world) closedWhereOpen(p *proc, goods int) bool {
	if !w.failsOver || w.omits(CloseWhereOpen) {
		return true
	}
	p.step()
	s := p.host.redis
	g, k := s.gateOf(goods, false)
	if g != open && g != openingOver || !k.closed {
		return false
	}
	lease := k.lease
	p.step()
	row := w.db.goods[goods]
	return w.db.up && row.openedOn == lease && !row.ending
}

// syncSale writes the merchant's fields from MySQL to Redis. It returns false where Redis or MySQL
// does not answer.
func (w *world) syncSale(p *proc, goods int) bool {
	p.step()
	if !w.db.up {
		return false
	}
	row := w.db.goods[goods]
	p.step()
	p.lag(4, 60)
	s := p.host.redis
	if !s.answers() {
		return false
	}
	s.update(goods, row)
	return true
}

// runSyncer repeats changes that Redis lacks.
func (w *world) runSyncer(p *proc) {
	for {
		p.round(10)
		for g, row := range w.db.goods {
			if k := p.host.redis.goods[g]; w.db.up && k.epoch == row.epoch && !k.sameFields(row) {
				w.syncSale(p, g)
			}
		}
		if !w.db.up {
			continue
		}
		for _, c := range slices.Clone(w.db.cuts) {
			if c.at <= w.now-tolerance {
				w.finishCut(p, c)
			}
		}
	}
}

func (k *keys) sameFields(row goodsRow) bool {
	return k.closed == row.closed && k.limit == row.limit
}

// update is update.lua: of two changes the newer version of the row prevails.
func (s *server) update(goods int, row goodsRow) {
	k := s.goods[goods]
	if row.version < k.version && !s.w.omits(VersionInUpdate) {
		return
	}
	s.writing()
	k.version = row.version
	if k.loaded && k.epoch == row.epoch {
		k.closed, k.limit = row.closed, row.limit
	}
}
