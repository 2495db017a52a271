package check

import "fmt"

// Judge checks a history against the guarantees.
func Judge(h History, a Allowance) Verdict {
	j := judge{h: h, allow: a, rows: make(map[string]Row, len(h.Rows))}
	for _, r := range h.Rows {
		if _, twice := j.rows[r.OrderSn]; twice {
			j.verdict.Doubled++
			j.violated("G7", "order %s has two rows", r.OrderSn)
		}
		j.rows[r.OrderSn] = r
	}
	j.stock()
	j.limits()
	j.promises()
	j.leaks()
	j.statuses()
	j.window()
	j.repeats()
	j.httpErrors()
	return j.verdict
}

type judge struct {
	h       History
	allow   Allowance
	rows    map[string]Row
	verdict Verdict
}

func (j *judge) violated(rule, format string, args ...any) {
	v := Violation{rule, fmt.Sprintf(format, args...)}
	j.verdict.Violations = append(j.verdict.Violations, v)
}

// equal adds a violation where two numbers differ.
func (j *judge) equal(rule, what string, got, want int64) {
	if got != want {
		j.violated(rule, "%s: %d, not %d", what, got, want)
	}
}

// activeOrders sums the units of active orders: of all, and of each buyer.
func (j *judge) activeOrders() (units int64, orders int, byBuyer map[int64]int64) {
	byBuyer = make(map[int64]int64)
	for _, r := range j.h.Rows {
		if r.Active() {
			units, orders = units+r.Quantity, orders+1
			byBuyer[r.BuyerID] += r.Quantity
		}
	}
	return units, orders, byBuyer
}

// stock checks G1: MySQL never oversells.
func (j *judge) stock() {
	units, orders, _ := j.activeOrders()
	j.verdict.Orders, j.verdict.Oversold = orders, max(0, units-j.h.Sale.Units)
	if units > j.h.Sale.Units {
		j.violated("G1", "%d units are sold of %d", units, j.h.Sale.Units)
	}
	if j.h.Sale.Stock < 0 {
		j.violated("G1", "the stock is %d", j.h.Sale.Stock)
	}
	j.equal("G1", "MySQL's total", j.h.Sale.Total, j.h.Sale.Units)
	j.equal("G1", "units sold and stock in MySQL", units+j.h.Sale.Stock, j.h.Sale.Units)
}

// limits checks G2: no buyer holds more than the limit.
func (j *judge) limits() {
	_, _, byBuyer := j.activeOrders()
	for buyer, units := range byBuyer {
		if units > j.h.Sale.Limit {
			j.violated("G2", "buyer %d holds %d units of at most %d", buyer, units, j.h.Sale.Limit)
		}
	}
	j.equalHoldings("G2", "MySQL's holdings", j.h.Holdings, byBuyer)
}

// equalHoldings compares the units of each buyer; a missing entry counts as 0.
func (j *judge) equalHoldings(rule, where string, got, want map[int64]int64) {
	for buyer, units := range want {
		if got[buyer] != units {
			j.violated(rule, "%s: buyer %d has %d, and orders of %d", where, buyer, got[buyer],
				units)
		}
	}
	for buyer, units := range got {
		if _, known := want[buyer]; !known && units != 0 {
			j.violated(rule, "%s: buyer %d has %d, and no order", where, buyer, units)
		}
	}
}

// promises checks G3, every promise is a row, and the part of G5 that no promised order fails.
func (j *judge) promises() {
	for _, b := range j.h.Buyers {
		for sn := range promised(b) {
			row, written := j.rows[sn]
			failed := !written || row.Status == "failed" && row.BuyerID == b.ID
			switch {
			case failed && j.allow.BrokenPromises && j.h.Final[sn] == "failed":
				j.verdict.Broken++
			case !written:
				j.verdict.Lost++
				j.violated("G3", "buyer %d was promised %s, which MySQL does not have", b.ID, sn)
			case row.BuyerID != b.ID:
				j.violated("G3", "buyer %d was promised %s, which is buyer %d's", b.ID, sn,
					row.BuyerID)
			case row.Status == "failed":
				j.verdict.Lost++
				j.violated("G5", "buyer %d was promised %s, which failed", b.ID, sn)
			}
		}
	}
}

func promised(b Buyer) map[string]bool {
	sns := make(map[string]bool, 1)
	for _, p := range b.Promises {
		sns[p.OrderSn] = true
	}
	return sns
}
