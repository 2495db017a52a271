package check

import "fmt"

// Judge holds a history against the guarantees.
func Judge(h History, e Expect) Verdict {
	j := judge{h: h, e: e, rows: make(map[string]Row, len(h.Rows))}
	for _, r := range h.Rows {
		if _, twice := j.rows[r.OrderSn]; twice {
			j.v.Doubled++
			j.broken("G7", "order %s has two rows", r.OrderSn)
		}
		j.rows[r.OrderSn] = r
	}
	j.oversold()
	j.overLimit()
	j.kept()
	j.leaks()
	j.lies()
	j.window()
	j.again()
	j.manners()
	return j.v
}

type judge struct {
	h    History
	e    Expect
	rows map[string]Row
	v    Verdict
}

func (j *judge) broken(rule, format string, args ...any) {
	j.v.Violations = append(j.v.Violations, Violation{rule, fmt.Sprintf(format, args...)})
}

// must notes a violation where two numbers differ.
func (j *judge) must(rule, what string, got, want int64) {
	if got != want {
		j.broken(rule, "%s: %d, not %d", what, got, want)
	}
}

// units is what the active orders hold, all together and by buyer.
func (j *judge) units() (all int64, orders int, by map[int64]int64) {
	by = make(map[int64]int64)
	for _, r := range j.h.Rows {
		if r.Active() {
			all, orders = all+r.Quantity, orders+1
			by[r.BuyerID] += r.Quantity
		}
	}
	return all, orders, by
}

// oversold is G1.
func (j *judge) oversold() {
	units, orders, _ := j.units()
	j.v.Orders, j.v.Oversold = orders, max(0, units-j.h.Sale.Units)
	if units > j.h.Sale.Units {
		j.broken("G1", "%d units are sold of %d", units, j.h.Sale.Units)
	}
	if j.h.Sale.Stock < 0 {
		j.broken("G1", "the stock is %d", j.h.Sale.Stock)
	}
	j.must("G1", "MySQL's total", j.h.Sale.Total, j.h.Sale.Units)
	j.must("G1", "units sold and stock in MySQL", units+j.h.Sale.Stock, j.h.Sale.Units)
}

// overLimit is G2.
func (j *judge) overLimit() {
	_, _, by := j.units()
	for buyer, units := range by {
		if units > j.h.Sale.Limit {
			j.broken("G2", "buyer %d holds %d units of at most %d", buyer, units, j.h.Sale.Limit)
		}
	}
	j.sameHoldings("G2", "MySQL's holdings", j.h.Held, by)
}

// sameHoldings holds two accounts of who holds what against each other; no entry is an entry of 0.
func (j *judge) sameHoldings(rule, whose string, got, want map[int64]int64) {
	for buyer, units := range want {
		if got[buyer] != units {
			j.broken(rule, "%s: buyer %d has %d, and orders of %d", whose, buyer, got[buyer], units)
		}
	}
	for buyer, units := range got {
		if _, known := want[buyer]; !known && units != 0 {
			j.broken(rule, "%s: buyer %d has %d, and no order", whose, buyer, units)
		}
	}
}

// kept is G3, and of G5 that a promise is not broken.
func (j *judge) kept() {
	for _, b := range j.h.Buyers {
		for sn := range promised(b) {
			row, written := j.rows[sn]
			switch {
			case (!written || row.Status == "failed" && row.BuyerID == b.ID) && j.e.MayBreak && j.h.Final[sn] == "failed":
				j.v.Broken++
			case !written:
				j.v.Lost++
				j.broken("G3", "buyer %d was promised %s, which MySQL does not have", b.ID, sn)
			case row.BuyerID != b.ID:
				j.broken("G3", "buyer %d was promised %s, which is buyer %d's", b.ID, sn, row.BuyerID)
			case row.Status == "failed":
				j.v.Lost++
				j.broken("G5", "buyer %d was promised %s, which failed", b.ID, sn)
			}
		}
	}
}

func promised(b Buyer) map[string]bool {
	sns := make(map[string]bool, 1)
	for _, p := range b.Heard {
		sns[p.OrderSn] = true
	}
	return sns
}
