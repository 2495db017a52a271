package verdict

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// checkSale compares all orders of the merchant's list with the buyers' lists and, if it was read,
// with the ledger.
func (j *checker) checkSale(ctx context.Context, all []listedOrder, ledgerRead bool) {
	seen := map[string]bool{}
	var active int64
	released := false
	for _, o := range all {
		if seen[o.OrderSn] {
			j.addDifference(ruleDouble, "order %s is in the sale's list twice", o.OrderSn)
		}
		seen[o.OrderSn] = true
		active += o.active()
		released = released || o.active() == 0
		switch f, known := j.found[o.OrderSn]; {
		case !known && j.Exclusive:
			j.addDifference(ruleUnreported, "order %s of buyer %s is only in the sale's list",
				o.OrderSn, o.BuyerID)
		case known && f.BuyerID != o.BuyerID:
			j.addDifference(ruleDouble, "order %s is buyer %s's, and buyer %s's in the sale's list",
				o.OrderSn, f.BuyerID, o.BuyerID)
		case known && f.Quantity != o.Quantity:
			j.addDifference(ruleLedger, "order %s: %d units, and %d in the sale's list", o.OrderSn,
				f.Quantity, o.Quantity)
		}
	}
	for sn, o := range j.found {
		if !seen[sn] {
			j.addDifference(ruleLost, "%s of buyer %s is not in the sale's list", sn, o.BuyerID)
		}
	}
	if ledgerRead { // a ledger that was not read is a difference already
		j.checkStock(active, released)
		j.checkLedger(ctx, active)
	}
}

// checkStock finds oversold units, and buyers who were refused while units were left. active is the
// units of active orders. If an order has released its units, both may be correct: the same unit
// was accepted twice, or returned units are left. A buyer may give up behind a limiter while units
// are left, but not every buyer.
func (j *checker) checkStock(active int64, released bool) {
	l := j.Ledger
	if j.Stock > 0 && l.Total != j.Stock {
		j.addDifference(ruleStock, "the ledger's total is %d, and the sale has %d units", l.Total,
			j.Stock)
	}
	if active > l.Total || l.Sold > l.Total || l.Available < 0 || l.Database.Stock < 0 {
		j.addDifference(ruleStock, "%d units in orders, %d sold, of %d", active, l.Sold, l.Total)
	}
	if released {
		return
	}
	var accepted int64
	for _, k := range j.Result.Holders {
		accepted += k.Quantity * int64(len(k.OrderSns))
	}
	if accepted > l.Total {
		j.addDifference(ruleStock, "%d units were accepted of %d", accepted, l.Total)
	}
	if !j.Exclusive || l.Available < max(1, j.Plan.Quantity) {
		return
	}
	if refused := j.Result.Count(buyer.SoldOut); refused > 0 {
		j.addDifference(ruleSoldOut, "%d buyers; %d units are left", refused, l.Available)
	}
	tried := j.Result.Count(buyer.Refused) + j.Result.Count(buyer.GaveUp)
	if tried > 0 && active == 0 && !j.CutShort {
		j.addDifference(ruleSoldOut, "%d buyers were refused or gave up, and nobody has an order; "+
			"%d units are left", tried, l.Available)
	}
}

// checkLedger compares the sums of Redis, of the database and of the orders, whose active units are
// active. Different code counts each, so a defect in one of them is a difference. The sums of a
// sale with other clients may change between two reads, so only those of an exclusive sale are
// compared with the orders.
func (j *checker) checkLedger(ctx context.Context, active int64) {
	l := j.Ledger
	if !l.Balanced || l.Available+l.Pending+l.Sold != l.Total {
		j.addDifference(ruleLedger, "it does not add up: %+v", l)
	}
	same := l.Sold == active && l.Database.Active == active && l.Database.Stock == l.Total-active
	if j.Exclusive && !same && !j.expiredMeanwhile(ctx, active) {
		j.addDifference(ruleLedger, "orders hold %d units, the ledger says %+v", active, l)
	}
}

// releaseTime is longer than Redis needs to get the units of an expired order back.
const releaseTime = time.Second

// expiredMeanwhile reports whether orders expired after the ledger was read, and so explain why the
// orders hold fewer units. A later ledger then has no more units than the orders: nobody buys now.
func (j *checker) expiredMeanwhile(ctx context.Context, active int64) bool {
	l := j.Ledger
	if active > min(l.Sold, l.Database.Active) || apiclient.Sleep(ctx, releaseTime) != nil {
		return false
	}
	after, err := j.Merchant.Drained(ctx, j.Plan.GoodsID)
	return err == nil && after.Total == l.Total && after.Available+after.Sold == after.Total &&
		max(after.Sold, after.Database.Active, after.Total-after.Database.Stock) <= active
}
