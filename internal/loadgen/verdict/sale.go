package verdict

import (
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// sale compares the sale's whole list of orders with what was promised and with the ledger.
func (j *judge) sale(all []orderLine) {
	seen := map[string]bool{}
	var active int64
	var givenBack int
	for _, o := range all {
		if seen[o.OrderSn] {
			j.differ(ruleDouble, "order %s is in the sale's list twice", o.OrderSn)
		}
		seen[o.OrderSn] = true
		active += o.active()
		if o.active() == 0 {
			givenBack++
		}
		if _, known := j.found[o.OrderSn]; !known && j.Mine {
			j.differ(ruleUntold, "order %s of buyer %s is in the sale's list alone", o.OrderSn, o.BuyerID)
		}
	}
	for sn, o := range j.found {
		if !seen[sn] {
			j.differ(ruleLost, "order %s of buyer %s is in the buyer's list and not in the sale's", sn, o.BuyerID)
		}
	}
	if !j.read {
		return // which is a difference already
	}
	if promised := j.promised(); givenBack == 0 && promised > j.Ledger.Total {
		j.differ(ruleStock, "%d units were promised of %d", promised, j.Ledger.Total)
	}
	j.ledger(active)
	j.soldOut(givenBack)
}

// promised is how many units all 202s are for.
func (j *judge) promised() (units int64) {
	for _, k := range j.Result.Kept {
		units += k.Quantity * int64(len(k.OrderSns))
	}
	return units
}

// ledger holds the sums against each other, in Redis and in the database.
func (j *judge) ledger(active int64) {
	l := j.Ledger
	if active > l.Total || l.Sold > l.Total || l.Available < 0 || l.Database.Stock < 0 {
		j.differ(ruleStock, "%d units in orders, %d sold, of %d", active, l.Sold, l.Total)
	}
	if !l.Balanced || l.Available+l.Pending+l.Sold != l.Total {
		j.differ(ruleLedger, "total %d = available %d + pending %d + sold %d, balanced: %t", l.Total, l.Available, l.Pending, l.Sold, l.Balanced)
	}
	if !j.Mine {
		return // others may have bought between the two readings
	}
	if l.Sold != active || l.Database.Active != active || l.Database.Stock != l.Total-active {
		j.differ(ruleLedger, "orders hold %d units of %d; sold says %d, the database %d active and %d in stock",
			active, l.Total, l.Sold, l.Database.Active, l.Database.Stock)
	}
}

// soldOut looks whether buyers were sent away while there was something left. Units that came back may have been left
// over honestly.
func (j *judge) soldOut(givenBack int) {
	told := j.Result.Count(buyer.SoldOut)
	if j.Mine && told > 0 && givenBack == 0 && len(j.Result.Kept) > 0 && j.Ledger.Available >= j.Result.Kept[0].Quantity {
		j.differ(ruleSoldOut, "%d buyers were told so, and %d units are left", told, j.Ledger.Available)
	}
}
