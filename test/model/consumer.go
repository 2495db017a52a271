package model

import "slices"

// consume writes batch after batch from a shard's queue, which has one active consumer.
func (w *world) consume(p *proc, q *queue) {
	for {
		st := w.openStream(p.host, q)
		if st == nil {
			p.round(4)
			continue
		}
		for !st.over {
			if w.harder && w.rnd.IntN(64) == 0 {
				p.sleep(w.rnd.IntN(30)) // the queue has a backlog
			}
			batch := st.receive(1 + w.rnd.IntN(4))
			if len(batch) == 0 {
				p.sleep(1 + w.rnd.IntN(3))
				continue
			}
			p.step()
			if w.omits(AckAfterCommit) {
				st.ack()
				p.step()
			}
			if !w.write(p, batch) {
				w.nack(st)
				break
			}
			p.step()
			st.ack()
		}
		st.close()
		p.step()
	}
}

// nack returns messages to the broker, which counts deliveries. It is used without RetryInPlace
// only.
func (w *world) nack(st *stream) {
	if st.over {
		return
	}
	st.q.unacked = slices.DeleteFunc(st.q.unacked, func(m message) bool {
		if m.attempts >= 5 {
			w.logf("dead-lettered by the broker: %v", m.lines)
		}
		return m.attempts >= 5
	})
	st.close()
}

// write writes the lines of each goods, then the barriers. It returns false only without
// RetryInPlace.
func (w *world) write(p *proc, batch []message) bool {
	byGoods := make([][]line, w.nGoods)
	for _, m := range batch {
		byGoods[m.goods] = append(byGoods[m.goods], m.lines...)
	}
	for g, lines := range byGoods {
		if len(lines) > 0 && !w.writeLines(p, g, lines) {
			return false
		}
	}
	for _, m := range batch {
		for m.barrier {
			p.step()
			if w.db.up {
				w.db.barriers[[2]int{m.goods, m.token}] = true
				break
			}
		}
	}
	return true
}

// writeLines writes lines in one transaction, or in halves where one of them is bad.
func (w *world) writeLines(p *proc, goods int, lines []line) bool {
	if slices.ContainsFunc(lines, func(l line) bool { return l.bad }) {
		return w.split(p, goods, lines)
	}
	out, lost, ok := w.commit(p, goods, lines)
	if !ok {
		return false
	}
	if out.refused {
		return w.split(p, goods, lines)
	}
	w.settleAndRelease(p, goods, out)
	return len(lost) == 0 || w.failAll(p, goods, lost)
}

// split writes lines that MySQL has refused in halves, and a single one as failed.
func (w *world) split(p *proc, goods int, lines []line) bool {
	if len(lines) == 1 || w.omits(BatchSplit) {
		return w.failAll(p, goods, lines)
	}
	half := len(lines) / 2
	return w.writeLines(p, goods, lines[:half]) && w.writeLines(p, goods, lines[half:])
}

// inTx waits until a transaction succeeds: it repeats after a deadlock or a lost connection.
func (w *world) inTx(p *proc, goods int) bool {
	for {
		p.step()
		if w.db.writable(goods) && w.rnd.IntN(16) != 0 {
			return true
		}
		if w.omits(RetryInPlace) {
			return false
		}
		p.sleep(1 + w.rnd.IntN(5))
	}
}

// commit writes lines of one goods. Redis first adopts their late orders. commit parks them where
// no open gate does, and returns as lost those that an open gate refused.
func (w *world) commit(p *proc, goods int, lines []line) (out outcome, lost []line, ok bool) {
	if w.omits(SettleAfterCommit) {
		p.step()
		p.host.redis.settle(goods, numbers(lines))
	}
	seen := adoption{adoptedBy: -1}
	for {
		if !w.inTx(p, goods) {
			return out, lost, false
		}
		out = w.db.writeBatch(p, goods, lines, seen)
		if len(out.adopt) == 0 {
			w.logf("%s committed %v of goods %d, already written: %v",
				p.host.name, out.created, goods, out.existing)
			return out, lost, true
		}
		if w.rnd.IntN(4) == 0 { // a buyer asks at this moment
			l := pick(w.rnd, out.adopt)
			w.spawn(pick(w.rnd, w.apis), 0, func(p *proc) { w.queryOrder(p, l) })
			p.sleep(w.rnd.IntN(10))
		}
		p.step()
		took, g := p.host.redis.adopt(goods, out.epoch, out.adopt, false)
		if g != open {
			seen.park = !w.omits(LateOrdersNeverWait)
			p.sleep(w.rnd.IntN(3))
			continue
		}
		w.logf("%s adopted %v of goods %d by epoch %d", p.host.name, took, goods, out.epoch)
		if seen.adoptedBy == out.epoch {
			for sn := range seen.adopted {
				took[sn] = seen.adopted[sn]
			}
		}
		seen.adopted, seen.adoptedBy = took, out.epoch
		p.lag(4, 60) // and the order is asked for, or its buyer cancels
		var refused []line
		lines, refused = splitAdopted(lines, took)
		lost = append(lost, refused...)
	}
}

// adoption has the late orders that an epoch adopted, as far as the writer knows them, and whether
// it parks the others.
type adoption struct {
	adopted   map[int]int
	adoptedBy int
	park      bool
}

// splitAdopted is orderwriter's function of that name.
func splitAdopted(lines []line, took map[int]int) (kept, lost []line) {
	for _, l := range lines {
		switch units, asked := took[l.sn]; {
		case !asked || units == l.q:
			kept = append(kept, l)
		case units == 0:
			lost = append(lost, l)
		}
	}
	return kept, lost
}

func numbers(lines []line) []int {
	sns := make([]int, len(lines))
	for i, l := range lines {
		sns[i] = l.sn
	}
	return sns
}

// failAll writes each line without a row as failed.
func (w *world) failAll(p *proc, goods int, lines []line) bool {
	for _, l := range lines {
		if !w.inTx(p, goods) {
			return false
		}
		if r := w.db.find(goods, l.sn); !unwritten(r) {
			if r.tombstone {
				w.settleAndRelease(p, goods, outcome{moves: w.db.resolveTombstone(l)})
			}
			continue
		}
		if w.db.refusesAny(l) {
			w.db.keepMessage(l)
			continue
		}
		w.logf("%s writes order %d of goods %d as failed", p.host.name, l.sn, goods)
		w.settleAndRelease(p, goods, outcome{moves: []*move{w.db.fail(l)}})
	}
	return true
}

// settleAndRelease applies a committed batch to Redis.
func (w *world) settleAndRelease(p *proc, goods int, out outcome) {
	p.step()
	p.host.redis.settle(goods, append(out.created, out.existing...))
	w.applyMoves(p, out.moves)
}
