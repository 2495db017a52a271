package model

import "slices"

// consume is Consumer.runShard: whoever has the shard's stream writes batch after batch.
func (w *world) consume(p *proc, q *queue) {
	for {
		st := w.openStream(p.host, q)
		if st == nil {
			p.round(4)
			continue
		}
		for !st.over {
			batch := st.receive(1 + w.rnd.IntN(4))
			if len(batch) == 0 {
				p.sleep(1 + w.rnd.IntN(3))
				continue
			}
			p.step()
			if w.off(AckAfterCommit) {
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

// nack is only for the rule left out: trouble is given back to the broker, which counts.
func (w *world) nack(st *stream) {
	if st.over {
		return
	}
	st.q.unacked = slices.DeleteFunc(st.q.unacked, func(m message) bool {
		if m.attempts >= 5 {
			w.say("dead-lettered by the broker: %v", m.lines)
		}
		return m.attempts >= 5
	})
	st.close()
}

// write is Writer.Write: lines by goods, then barriers. False only where the trouble is nacked.
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

// writeLines is Writer.writeLines: together, or in halves where one of them is bad.
func (w *world) writeLines(p *proc, goods int, lines []line) bool {
	if slices.ContainsFunc(lines, func(l line) bool { return l.bad }) {
		if len(lines) == 1 || w.off(BatchNotRefusedWhole) {
			return w.failAll(p, goods, lines)
		}
		half := len(lines) / 2
		return w.writeLines(p, goods, lines[:half]) && w.writeLines(p, goods, lines[half:])
	}
	out, lost, ok := w.commit(p, goods, lines)
	if !ok {
		return false
	}
	w.tell(p, goods, out)
	return len(lost) == 0 || w.failAll(p, goods, lost)
}

// inTx waits for a transaction that can be: a deadlock or a lost connection is tried again in a new one.
func (w *world) inTx(p *proc) bool {
	for {
		p.step()
		if w.db.up && w.rnd.IntN(16) != 0 {
			return true
		}
		if w.off(TroubleRetriedInPlace) {
			return false
		}
		p.sleep(1 + w.rnd.IntN(5))
	}
}

// commit is Writer.commit.
func (w *world) commit(p *proc, goods int, lines []line) (out outcome, lost []line, ok bool) {
	if w.off(SettleAfterCommit) {
		p.step()
		p.host.redis.settle(goods, numbers(lines))
	}
	seen := sight{adoptedBy: -1}
	for {
		if !w.inTx(p) {
			return out, lost, false
		}
		out = w.db.writeBatch(p, goods, lines, seen)
		if len(out.adopt) == 0 {
			w.say("%s committed %v of goods %d, there before %v", p.host.name, out.created, goods, out.existing)
			return out, lost, true
		}
		p.step()
		took, g := p.host.redis.adopt(goods, out.epoch, out.adopt)
		if g == away || g == otherEpoch || g != open && w.off(LateNotWaitedFor) {
			p.sleep(1 + w.rnd.IntN(3))
			continue
		}
		w.say("%s adopted %v of goods %d by epoch %d", p.host.name, took, goods, out.epoch)
		if seen.adoptedBy == out.epoch {
			for sn := range seen.adopted {
				took[sn] = seen.adopted[sn]
			}
		}
		seen.adopted, seen.adoptedBy = took, out.epoch
		lines, lost = dropLost(lines, lost, took)
	}
}

// sight is what the writer has seen of Redis: which late orders which epoch took in, or need not.
type sight struct {
	adopted   map[int]bool
	adoptedBy int
}

func dropLost(lines, lost []line, took map[int]bool) (kept, dropped []line) {
	for _, l := range lines {
		if got, asked := took[l.sn]; asked && !got {
			lost = append(lost, l)
		} else {
			kept = append(kept, l)
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

// failAll is Writer.fail: each alone; one that has a row already is left alone.
func (w *world) failAll(p *proc, goods int, lines []line) bool {
	for _, l := range lines {
		if !w.inTx(p) {
			return false
		}
		if r := w.db.find(goods, l.sn); r != nil {
			if r.tomb {
				w.tell(p, goods, outcome{moves: w.db.identify(l)})
			}
			continue
		}
		w.say("%s writes order %d of goods %d as failed", p.host.name, l.sn, goods)
		w.tell(p, goods, outcome{moves: []*move{w.db.fail(l)}})
	}
	return true
}

// tell is Writer.tell.
func (w *world) tell(p *proc, goods int, out outcome) {
	p.step()
	p.host.redis.settle(goods, append(out.created, out.existing...))
	w.giveMoves(p, out.moves)
}

// giveMoves is Giver.Give: to Redis, then marked in MySQL.
func (w *world) giveMoves(p *proc, moves []*move) {
	for _, m := range moves {
		p.step()
		if p.host.redis.release(m) == givenLater {
			continue
		}
		p.step()
		if w.db.up {
			m.given = true
		}
	}
}

// give is Giver.Run.
func (w *world) give(p *proc) {
	for {
		p.round(10)
		if w.db.up {
			w.giveMoves(p, w.db.notGiven(w.now-10))
		}
	}
}

// expire is Expirer.Run.
func (w *world) expire(p *proc) {
	for {
		p.round(10)
		for g := range w.nGoods {
			if due := w.db.due(g); w.db.up && len(due) > 0 {
				p.step()
				w.giveMoves(p, w.db.finish(p, g, due, expired))
			}
		}
	}
}

// cancel is Cashier.Cancel.
func (w *world) cancel(p *proc, l line) {
	if !w.db.up {
		return
	}
	r := w.db.find(l.goods, l.sn)
	if r == nil || r.buyer != l.buyer {
		return
	}
	w.giveMoves(p, w.db.finish(p, l.goods, []*row{r}, cancelled))
}

// pay is Cashier.Pay: one guarded statement.
func (w *world) pay(_ *proc, l line) {
	if r := w.db.find(l.goods, l.sn); w.db.up && r != nil && r.status == created && r.payBy > w.now {
		r.status = paid
	}
}

// relay is Relay.Run, and the feeding of a broker that came back without its data.
func (w *world) relay(p *proc) {
	for {
		p.round(5)
		for g := range w.nGoods {
			w.drainOutbox(p, g, relayAfter)
		}
		if w.broker.fresh && w.broker.up {
			w.feedFresh(p)
		}
	}
}

func (w *world) feedFresh(p *proc) {
	for g := range w.nGoods {
		if !p.host.redis.answers() || !w.feed(p, g, -1) {
			return
		}
	}
	w.broker.fresh = false
}

// drainOutbox is Relay.Drain; false where something could not be published.
func (w *world) drainOutbox(p *proc, goods, age int) bool {
	for {
		p.step()
		s := p.host.redis
		if !s.answers() {
			return false
		}
		var list []entry
		for _, e := range s.goods[goods].outbox {
			if e.at <= w.now-age {
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

// feed is Relay.Feed: what is pending and older than so many ticks.
func (w *world) feed(p *proc, goods, older int) bool {
	p.step()
	var lines []line
	for _, sn := range sorted(p.host.redis.goods[goods].pending) {
		if pd := p.host.redis.goods[goods].pending[sn]; w.now-pd.at > older {
			lines = append(lines, pd.line)
		}
	}
	return w.feedLines(p, goods, lines)
}

func (w *world) feedLines(p *proc, goods int, lines []line) bool {
	for len(lines) > 0 {
		n := min(1+w.rnd.IntN(3), len(lines)) // groups of its own
		if w.publish(p, goods, message{lines: lines[:n], goods: goods}, w.now+publishDeadline) != confirmed {
			return false
		}
		lines = lines[n:]
	}
	return true
}

// audit is Auditor.Mend.
func (w *world) audit(p *proc) {
	for {
		p.round(20)
		for g := range w.nGoods {
			w.mend(p, g)
		}
	}
}

func (w *world) mend(p *proc, goods int) {
	s := p.host.redis
	g, k := s.gateOf(goods, false)
	if g != open || len(k.pending) == 0 {
		return
	}
	patient, old := tolerance, feedAge
	if w.off(FeedAge) {
		patient, old = 0, 0
	}
	var asked []pend
	for _, sn := range sorted(k.pending) {
		if pd := k.pending[sn]; w.now-pd.at > patient {
			asked = append(asked, pd)
		}
	}
	p.step()
	if !w.db.up {
		return
	}
	var written []int
	var absent []line
	for _, pd := range asked {
		r := w.db.find(goods, pd.sn)
		switch {
		case r == nil && w.now-pd.at > old:
			absent = append(absent, pd.line)
		case r != nil && r.status != failedOrder:
			written = append(written, pd.sn)
		}
	}
	p.step()
	s.settle(goods, written)
	w.fedAgain(absent)
	w.feedLines(p, goods, absent)
}
