package model

import (
	"fmt"
	"maps"
	"slices"
)

// checkInvariants checks the guarantees that hold after every step.
func (w *world) checkInvariants() {
	active := make([]int, w.nGoods)
	holds := map[[2]int]int{}
	for _, r := range w.db.orders {
		if r.status.active() {
			active[r.goods] += r.q
			holds[[2]int{r.goods, r.buyer}] += r.q
		}
	}
	for g, row := range w.db.goods {
		if row.stock < 0 || row.stock+active[g] != row.total {
			w.violated("G1", "goods %d: stock %d and %d active, of %d", g, row.stock, active[g],
				row.total)
		}
		w.ledger(g)
		w.checkOpenings(g)
	}
	buyers := slices.SortedFunc(maps.Keys(holds), func(a, b [2]int) int {
		return slices.Compare(a[:], b[:]) // a seed always finds the same violation
	})
	for _, who := range buyers {
		n := holds[who]
		if most := w.db.goods[who[0]].maxLimit; n > most {
			w.violated("G2", "buyer %d holds %d of goods %d, more than %d",
				who[1], n, who[0], most)
		}
		if !w.omits(HoldingsInDB) && n != w.db.holdings[who] {
			w.violated("G2", "buyer %d holds %d of goods %d, and the holdings say %d",
				who[1], n, who[0], w.db.holdings[who])
		}
	}
}

// checkOpenings checks that no gate of an older epoch than MySQL's is open, where Redis can fail
// over. What such an epoch takes may fail.
func (w *world) checkOpenings(goods int) {
	for _, s := range w.servers {
		g, k := s.gateOf(goods, false)
		if w.failsOver && g == open && k.epoch < w.db.goods[goods].epoch {
			w.violated("G5", "epoch %d of goods %d is open on server %d, MySQL has epoch %d",
				k.epoch, goods, s.replid, w.db.goods[goods].epoch)
		}
	}
}

// ledger checks that Redis' numbers of one goods add up.
func (w *world) ledger(goods int) {
	k := w.current.goods[goods]
	if !k.loaded {
		return
	}
	units := 0
	for _, p := range k.pending {
		units += p.q
	}
	if k.avail < 0 || k.avail+k.pend+k.sold != k.total || units != k.pend {
		w.violated("G4",
			"goods %d in Redis: available %d, pending %d (%d by number), sold %d, of %d", goods,
			k.avail, k.pend, units, k.sold, k.total)
	}
}

// drained reports whether all work has ended.
func (w *world) drained() bool { return w.undrained() == "" }

// undrained names the work that is still under way. It returns "" once everything is drained.
func (w *world) undrained() string {
	for _, c := range w.clients {
		if !c.done {
			return fmt.Sprintf("buyer %d has no answer", c.buyer)
		}
	}
	for i, q := range w.broker.queues {
		if len(q.ready)+len(q.unacked) > 0 {
			return fmt.Sprintf("queue %d has %d ready, %d unacknowledged", i, len(q.ready),
				len(q.unacked))
		}
	}
	if len(w.db.pendingMoves(w.now+returnAfter)) > 0 || len(w.db.cuts) > 0 || w.broker.fresh {
		return "stock moves are pending"
	}
	for g, k := range w.current.goods {
		state, _ := w.current.gateOf(g, false)
		switch {
		case state != open || k.epoch != w.db.goods[g].epoch:
			return fmt.Sprintf("the gate of goods %d is not open (%d)", g, state)
		case k.lock != 0 && k.lockUntil > w.now:
			return fmt.Sprintf("goods %d is being rebuilt", g)
		case len(w.db.parkedLines(g)) > 0:
			return fmt.Sprintf("goods %d has %d parked orders", g, len(w.db.parkedLines(g)))
		case !k.sameFields(w.db.goods[g]):
			return fmt.Sprintf("goods %d lacks a merchant's change", g)
		case len(k.pending)+len(k.outbox) > 0:
			return fmt.Sprintf("goods %d has %d pending, %d in the outbox", g, len(k.pending),
				len(k.outbox))
		}
	}
	if slices.ContainsFunc(w.procs, func(p *proc) bool { return !p.dead && p.host == nil }) {
		return "an event is scheduled"
	}
	return ""
}

// checkDrained checks the guarantees that hold once everything is drained.
func (w *world) checkDrained() {
	for _, f := range w.records.all {
		w.checkPromise(f)
	}
	for g, k := range w.current.goods {
		row, active := w.db.goods[g], w.db.goods[g].total-w.db.goods[g].stock
		if k.avail != row.stock || k.sold != active || k.total != row.total {
			w.violated("G4", "goods %d: Redis has %d available and %d sold, MySQL %d and %d",
				g, k.avail, k.sold, row.stock, active)
		}
		for b := range 7 {
			if !w.omits(HoldingsInDB) && k.held(b) != w.db.holdings[[2]int{g, b}] {
				w.violated("G4", "buyer %d holds %d of goods %d in Redis, %d in MySQL",
					b, k.held(b), g, w.db.holdings[[2]int{g, b}])
			}
		}
	}
}

// checkPromise requires a row that has not failed for a promised order.
func (w *world) checkPromise(f *orderRecord) {
	r := w.db.find(f.goods, f.sn)
	switch {
	case f.answeredFailed && r != nil && r.status != failedOrder && !f.requeued:
		w.violated("G5",
			"buyer %d was answered that order %d of goods %d failed, and it was written", f.buyer,
			f.sn, f.goods)
	case !f.promised, r == nil && f.refusal == refusedAnyRow: // its dead letter has the order
	case r == nil || r.buyer != f.buyer || r.status == parked:
		w.violated("G3", "order %d of goods %d was promised to buyer %d and is not in MySQL",
			f.sn, f.goods, f.buyer)
	case (r.status == failedOrder || f.failed) && f.refusal == accepted:
		w.violated("G5", "order %d of goods %d was promised to buyer %d and failed",
			f.sn, f.goods, f.buyer)
	}
	if f.publishedAt < 0 && f.promised {
		w.requirePublishedInTime(f)
	}
}
