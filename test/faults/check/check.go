package check

import "fmt"

// Judge checks a history against the guarantees.
func Judge(h History, a Allowance) Verdict {
	j := judge{h: h, allow: a, rows: make(map[string]Row), held: make(map[int64]int64)}
	for _, r := range h.Rows {
		if _, twice := j.rows[r.OrderSn]; twice {
			j.verdict.Doubled++
			j.violated("G7", "order %s has two rows", r.OrderSn)
		}
		j.rows[r.OrderSn] = r
		if r.Active() {
			j.units, j.verdict.Orders = j.units+r.Quantity, j.verdict.Orders+1
			j.held[r.BuyerID] += r.Quantity
		}
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
	units   int64           // of active orders
	held    map[int64]int64 // units of each buyer's active orders
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

// stock checks G1: MySQL never oversells.
func (j *judge) stock() {
	if j.units > j.h.Sale.Units {
		j.verdict.Oversold = j.units - j.h.Sale.Units
		j.violated("G1", "%d units are sold of %d", j.units, j.h.Sale.Units)
	}
	if j.h.Sale.Stock < 0 {
		j.violated("G1", "the stock is %d", j.h.Sale.Stock)
	}
	j.equal("G1", "MySQL's total", j.h.Sale.Total, j.h.Sale.Units)
	j.equal("G1", "units sold and stock in MySQL", j.units+j.h.Sale.Stock, j.h.Sale.Units)
}

// limits checks G2: no buyer holds more than the limit.
func (j *judge) limits() {
	for buyer, units := range j.held {
		if units > j.h.Sale.Limit {
			j.violated("G2", "buyer %d holds %d units of at most %d", buyer, units, j.h.Sale.Limit)
		}
	}
	j.equalHoldings("G2", "MySQL's holdings", j.h.Holdings)
}

// equalHoldings compares the units of each buyer with the orders; a missing entry counts as 0.
func (j *judge) equalHoldings(rule, where string, got map[int64]int64) {
	for buyer, units := range j.held {
		what := fmt.Sprintf("%s of buyer %d, who has orders", where, buyer)
		j.equal(rule, what, got[buyer], units)
	}
	for buyer, units := range got {
		if _, known := j.held[buyer]; !known {
			j.equal(rule, fmt.Sprintf("%s of buyer %d, who has no order", where, buyer), units, 0)
		}
	}
}

// promises checks G3, every promise is a row, and the part of G5 that no promised order fails.
func (j *judge) promises() {
	for _, b := range j.h.Buyers {
		seen := make(map[string]bool)
		for _, p := range b.Accepted {
			sn := p.OrderSn
			if seen[sn] {
				continue
			}
			seen[sn] = true
			row, written := j.rows[sn]
			failed := !written || row.Status == "failed" && row.BuyerID == b.BuyerID
			switch {
			case failed && j.allow.BrokenPromises && j.h.Final[sn] == "failed":
				j.verdict.Broken++
			case !written:
				j.verdict.Lost++
				j.violated("G3", "buyer %d was promised %s, which MySQL lacks", b.BuyerID, sn)
			case row.BuyerID != b.BuyerID:
				j.violated("G3", "buyer %d was promised %s, which is buyer %d's", b.BuyerID, sn,
					row.BuyerID)
			case row.Status == "failed":
				j.verdict.Lost++
				j.violated("G5", "buyer %d was promised %s, which failed", b.BuyerID, sn)
			}
		}
	}
}
