package verdict

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// Case is the input of a comparison.
type Case struct {
	GoodsID  string
	Result   loadgen.Result
	Merchant apiclient.Client // token of the sale's merchant or of an operator
	Buyer    func(id int64) (apiclient.Client, error)
	// Limit is the sale's units per buyer; 0 skips that rule. Exclusive means that only these
	// buyers buy from the sale; otherwise the rules that need it are skipped.
	Limit     int64
	Exclusive bool
}

// readers bounds the buyers whose orders are read at the same time.
const readers = 32

// checker is one judging.
type checker struct {
	Case
	*Verdict
	mu         sync.Mutex
	readable   bool             // the ledger could be
	promisedTo map[string]int64 // promised order numbers, and whose
	found      map[string]listedOrder
}

// Check waits until nothing of the sale is pending, reads orders and ledger, and compares them with
// the answers. A read that fails until ctx ends is a difference too.
func Check(ctx context.Context, c Case) Verdict {
	j := &checker{
		Case:       c,
		Verdict:    newVerdict(),
		promisedTo: map[string]int64{},
		found:      map[string]listedOrder{},
	}
	j.promises()
	ledger, err := drained(ctx, c)
	if err != nil || ledger.Pending != 0 {
		j.addDifference(ruleRead, "the ledger is not drained: %d pending, %v", ledger.Pending, err)
	}
	j.Ledger, j.readable = ledger, err == nil
	var group errgroup.Group
	group.SetLimit(readers)
	for _, k := range c.Result.Holders {
		group.Go(func() error {
			j.buyer(ctx, k)
			return nil
		})
	}
	_ = group.Wait() // failures are in the verdict
	all, err := orders(ctx, c.Merchant, "/admin/sales/"+c.GoodsID+"/orders", "")
	if err != nil {
		j.addDifference(ruleRead, "the sale's orders: %v", err)
	} else {
		j.sale(all)
	}
	j.hostile()
	return *j.Verdict
}

// drained waits until nothing is pending, for at most half of the time. The other half is for
// reading the orders.
func drained(ctx context.Context, c Case) (apiclient.Ledger, error) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(until)/2)
		defer cancel()
	}
	return c.Merchant.Drained(ctx, c.GoodsID)
}

// promises collects the order numbers of all 202 answers and finds duplicates.
func (j *checker) promises() {
	for _, k := range j.Result.Holders {
		if k.Doubled {
			j.addDifference(
				ruleDouble,
				"buyer %d got two order numbers for one path: %v",
				k.BuyerID,
				k.OrderSns,
			)
		}
		for _, sn := range k.OrderSns {
			if other, known := j.promisedTo[sn]; known {
				j.addDifference(ruleDouble, "order %s was answered to buyers %d and %d", sn, other, k.BuyerID)
			}
			j.promisedTo[sn] = k.BuyerID
		}
	}
	j.Promised = len(j.promisedTo)
}

// buyer compares one buyer's answers with the buyer's own list of orders.
func (j *checker) buyer(ctx context.Context, k loadgen.Holder) {
	c, err := j.Buyer(k.BuyerID)
	var list []listedOrder
	if err == nil {
		list, err = orders(ctx, c, "/orders", j.GoodsID)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.addDifference(ruleRead, "buyer %d's orders: %v", k.BuyerID, err)
		return
	}
	listed := map[string]bool{}
	var active int64
	for _, o := range list {
		listed[o.OrderSn] = true
		active += o.active()
		j.listed(k, o)
	}
	if j.Limit > 0 && active > j.Limit {
		j.addDifference(ruleLimit, "buyer %d has %d units of %d", k.BuyerID, active, j.Limit)
	}
	for _, sn := range k.OrderSns {
		if !listed[sn] {
			j.missing(ctx, c, k.BuyerID, sn)
		}
	}
}

// listed checks an order of its buyer's list.
func (j *checker) listed(k loadgen.Holder, o listedOrder) {
	if _, twice := j.found[o.OrderSn]; twice {
		j.addDifference(ruleDouble, "order %s is in the lists twice", o.OrderSn)
	}
	j.found[o.OrderSn] = o
	j.Orders[o.Status]++
	if _, accepted := j.promisedTo[o.OrderSn]; !accepted {
		if k.Uncertain {
			j.Found++ // its answer was lost: not a difference
		} else {
			j.addDifference(ruleUnreported, "buyer %d has order %s without a 202", k.BuyerID, o.OrderSn)
		}
	}
	if o.Quantity != k.Quantity {
		j.addDifference(
			ruleLedger,
			"order %s has %d units, requested were %d",
			o.OrderSn,
			o.Quantity,
			k.Quantity,
		)
	}
	j.status(k.BuyerID, o.OrderSn, o.Status)
}

// status checks that an accepted order has left the queue and has not failed.
func (j *checker) status(buyer int64, sn, status string) {
	switch status {
	case "queued":
		j.addDifference(ruleFinal, "order %s of buyer %d is still queued", sn, buyer)
	case "failed":
		j.addDifference(ruleFailed, "order %s of buyer %d was accepted and has failed", sn, buyer)
	}
}

// missing reads an accepted order that no list contains: the API may still know its status.
func (j *checker) missing(ctx context.Context, c apiclient.Client, buyer int64, sn string) {
	var o listedOrder
	a, err := readWithRetry(ctx, c, "/orders/"+sn)
	if err == nil {
		err = a.Into(&o)
	}
	if err != nil {
		j.addDifference(ruleLost, "buyer %d got a 202 for order %s: %v", buyer, sn, err)
		return
	}
	j.Orders[o.Status]++
	if o.Status == "queued" || o.Status == "failed" {
		j.status(buyer, sn, o.Status)
		return
	}
	j.addDifference(ruleLost, "order %s of buyer %d is %s and in no list", sn, buyer, o.Status)
}

func (j *checker) hostile() {
	for _, b := range j.Result.Breaches {
		j.addDifference(ruleHostile, "%s", b)
	}
	for range j.Result.BreachCount - len(j.Result.Breaches) {
		j.addDifference(ruleHostile, "another")
	}
}

// pauseBetween is the wait before a failed read is repeated.
const pauseBetween = 50 * time.Millisecond
