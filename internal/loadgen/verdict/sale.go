package verdict

import (
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// sale compares the merchant's list of orders with the buyers' lists and with the ledger.
func (j *checker) sale(all []listedOrder) {
	seen := map[string]bool{}
	var active int64
	var givenBack int
	for _, o := range all {
		if seen[o.OrderSn] {
			j.addDifference(ruleDouble, "order %s is in the sale's list twice", o.OrderSn)
		}
		seen[o.OrderSn] = true
		active += o.active()
		if o.active() == 0 {
			givenBack++
		}
		if _, known := j.found[o.OrderSn]; !known && j.Exclusive {
			j.addDifference(ruleUnreported, "order %s of buyer %s is only in the sale's list", o.OrderSn, o.BuyerID)
		}
	}
	for sn, o := range j.found {
		if !seen[sn] {
			j.addDifference(ruleLost, "order %s of buyer %s is in the buyer's list and not in the sale's", sn, o.BuyerID)
		}
	}
	if !j.readable {
		return // already recorded as a difference
	}
	if promised := j.promised(); givenBack == 0 && promised > j.Ledger.Total {
		j.addDifference(ruleStock, "%d units were accepted of %d", promised, j.Ledger.Total)
	}
	j.ledger(active)
	j.soldOut(givenBack)
}

// promised is the number of units in all 202 answers.
func (j *checker) promised() (units int64) {
	for _, k := range j.Result.Holders {
		units += k.Quantity * int64(len(k.OrderSns))
	}
	return units
}

// ledger compares the sums of Redis, of the database and of the orders.
func (j *checker) ledger(active int64) {
	l := j.Ledger
	if active > l.Total || l.Sold > l.Total || l.Available < 0 || l.Database.Stock < 0 {
		j.addDifference(ruleStock, "%d units in orders, %d sold, of %d", active, l.Sold, l.Total)
	}
	if !l.Balanced || l.Available+l.Pending+l.Sold != l.Total {
		j.addDifference(ruleLedger, "total %d = available %d + pending %d + sold %d, balanced: %t", l.Total, l.Available, l.Pending, l.Sold, l.Balanced)
	}
	if !j.Exclusive {
		return // others may buy between two reads
	}
	if l.Sold != active || l.Database.Active != active || l.Database.Stock != l.Total-active {
		j.addDifference(ruleLedger, "orders hold %d units of %d; sold says %d, the database %d active and %d in stock",
			active, l.Total, l.Sold, l.Database.Active, l.Database.Stock)
	}
}

// soldOut finds buyers who were refused while units were left. After a release units may be left
// legitimately, because they returned later.
func (j *checker) soldOut(givenBack int) {
	refused := j.Result.Count(buyer.SoldOut)
	if j.Exclusive && refused > 0 && givenBack == 0 && len(j.Result.Holders) > 0 && j.Ledger.Available >= j.Result.Holders[0].Quantity {
		j.addDifference(ruleSoldOut, "%d buyers got SOLD_OUT, and %d units are left", refused, j.Ledger.Available)
	}
}
