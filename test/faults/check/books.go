package check

import "time"

// leaks is G4: every unit is in one place, every place agrees, and nothing is left on its way.
func (j *judge) leaks() {
	units, _, by := j.units()
	r := j.h.Redis
	j.must("G4", "units pending in Redis", r.Pending, 0)
	j.must("G4", "entries pending in Redis", int64(r.PendingEntries), 0)
	j.must("G4", "entries in the outbox", int64(r.OutboxEntries), 0)
	j.must("G4", "messages in the queues", int64(j.h.Queued), 0)
	j.must("G4", "moves not given", int64(j.h.MovesNotGiven), 0)
	j.must("G4", "Redis' total", r.Total, j.h.Sale.Units)
	j.must("G4", "units available and sold in Redis", r.Available+r.Sold, j.h.Sale.Units)
	j.must("G4", "units sold in Redis", r.Sold, units)
	j.must("G4", "units available in Redis", r.Available, j.h.Sale.Stock)
	if !r.Balanced {
		j.broken("G4", "the ledger does not balance")
	}
	j.sameHoldings("G4", "Redis' holdings", j.h.RedisHeld, by)
	if dead := len(j.h.DeadLetters) + j.h.DeadQueued; dead > j.e.DeadLetters {
		j.broken("G4", "%d dead letters: %v, and %d in the broker", dead, j.h.DeadLetters, j.h.DeadQueued)
	}
}

// lies is G5: what a buyer was told of an order is what MySQL has.
func (j *judge) lies() {
	for _, b := range j.h.Buyers {
		if len(b.Heard) == 0 {
			continue
		}
		sn := b.Heard[0].OrderSn
		row, written := j.rows[sn]
		for _, status := range b.Seen {
			switch {
			case status == "created" && (!written || row.Status == "failed"):
				j.broken("G5", "buyer %d was told that %s is created, which MySQL lacks", b.ID, sn)
			case status == "failed" && (written && row.Active() || !written && !j.e.MayBreak):
				j.broken("G5", "buyer %d was told that %s failed; in MySQL it is %q", b.ID, sn, row.Status)
			case status == "cancelled" && row.Status != "cancelled":
				j.broken("G5", "buyer %d was told that %s is cancelled; in MySQL it is %q", b.ID, sn, row.Status)
			case !known[status]:
				j.broken("G5", "buyer %d was told %s of %s, which it was promised", b.ID, status, sn)
			}
		}
	}
}

var known = map[string]bool{
	"queued": true, "created": true, "paid": true, "cancelled": true, "expired": true, "failed": true,
}

// window is G6. Asked and At bracket the moment of the reservation, so only what was certainly outside is a violation.
// A path that had won before is answered after the end too.
func (j *judge) window() {
	for _, b := range j.h.Buyers {
		won := make(map[string]time.Time)
		for _, p := range b.Heard {
			if _, before := won[p.Path]; before {
				continue
			}
			won[p.Path] = p.At
			if p.At.Before(j.h.Sale.StartAt) || !p.Asked.Before(j.h.Sale.EndAt) {
				j.broken("G6", "buyer %d got %s between %s and %s", b.ID, p.OrderSn, p.Asked, p.At)
			}
		}
	}
}

// again is G7: one path is one order, and there are no more orders than paths that were tried.
func (j *judge) again() {
	owner, of := make(map[string]string), make(map[string]string)
	rows := make(map[int64]int)
	for _, r := range j.h.Rows {
		if r.Active() {
			rows[r.BuyerID]++
		}
	}
	for _, b := range j.h.Buyers {
		for _, p := range b.Heard {
			if sn, asked := of[p.Path]; asked && sn != p.OrderSn {
				j.broken("G7", "buyer %d got %s and %s for one path", b.ID, sn, p.OrderSn)
			}
			if path, taken := owner[p.OrderSn]; taken && path != p.Path {
				j.broken("G7", "order %s stands for two paths", p.OrderSn)
			}
			of[p.Path], owner[p.OrderSn] = p.OrderSn, p.Path
		}
		if n := rows[b.ID]; n > b.Paths {
			j.v.Doubled += int64(n - b.Paths)
			j.broken("G7", "buyer %d has %d orders, and tried %d paths", b.ID, n, b.Paths)
		}
		delete(rows, b.ID)
	}
	for buyer, n := range rows {
		j.broken("G7", "buyer %d has %d orders, and never asked", buyer, n)
	}
}

// manners is the contract's word on 5xx.
func (j *judge) manners() {
	for _, b := range j.h.Buyers {
		if b.Faults > 0 {
			j.broken("HTTP", "buyer %d got %d answers of 5xx other than 503", b.ID, b.Faults)
		}
		if b.Unsaid > 0 {
			j.broken("HTTP", "buyer %d got %d answers of 503 that did not say when to come again", b.ID, b.Unsaid)
		}
	}
}
