package verdict

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// Case is the input of a comparison.
type Case struct {
	Plan     loadgen.Plan // the load: its goods, its APIs and its buyers' tokens
	Result   loadgen.Result
	Merchant apiclient.Client // token of the sale's merchant or of an operator
	// Stock is the units that the sale was created with; 0 skips the comparison with the ledger's
	// total. Limit is the sale's units per buyer; 0 skips that rule. Exclusive means that only
	// these buyers buy from the sale; otherwise the rules that need it are skipped.
	Stock     int64
	Limit     int64
	Exclusive bool
	// CutShort means that a signal or a time limit stopped buyers. The rules about buyers in a line
	// who did not get a unit are then skipped.
	CutShort bool
}

// client reads as a buyer, over the merchant's connections: the load may have used up its own.
func (c Case) client(id int64) (apiclient.Client, error) {
	token, err := c.Plan.Token(id)
	base := c.Plan.Bases[int(id)%len(c.Plan.Bases)]
	return apiclient.Client{Base: base, Token: token, HTTP: c.Merchant.HTTP}, err
}

// readers bounds the buyers whose orders are read at the same time.
const readers = 32

// checker is the state of one comparison. The lock guards the verdict and the maps while several
// goroutines read buyers' orders.
type checker struct {
	Case
	Verdict
	mu         sync.Mutex
	promisedTo map[string]int64       // the buyer of each order number in a 202
	found      map[string]listedOrder // orders in the buyers' lists
}

// Check waits until nothing of the sale is pending, reads orders and ledger, and compares them with
// the answers. The context must have a deadline. A read that fails until then is a difference too.
func Check(ctx context.Context, c Case) Verdict {
	j := &checker{
		Case: c, Verdict: newVerdict(c.Plan.Room != nil),
		promisedTo: map[string]int64{}, found: map[string]listedOrder{},
	}
	j.collectPromises()
	// Half of the time is for the ledger to drain, the other half for reading the orders.
	end, _ := ctx.Deadline()
	half, cancel := context.WithTimeout(ctx, time.Until(end)/2)
	defer cancel()
	ledger, err := c.Merchant.Drained(half, c.Plan.GoodsID)
	if err != nil || ledger.Pending != 0 {
		j.addDifference(ruleRead, "the ledger is not drained: %d pending, %v", ledger.Pending, err)
	}
	j.Ledger = ledger
	var group errgroup.Group
	group.SetLimit(readers)
	for _, k := range c.Result.Holders {
		group.Go(func() error {
			j.checkBuyer(ctx, k)
			return nil
		})
	}
	_ = group.Wait() // failures are in the verdict
	ledgerRead := err == nil
	all, err := orders(ctx, ofSale(ctx, c.Merchant, c.Plan.GoodsID), "")
	if err != nil {
		j.addDifference(ruleRead, "the sale's orders: %v", err)
	} else {
		j.checkSale(ctx, all, ledgerRead)
		if c.Plan.Room != nil {
			j.checkLine(ctx, all)
		}
	}
	for _, b := range c.Result.Breaches {
		j.addDifference(ruleHostile, "%s", b)
	}
	return j.Verdict
}

// collectPromises collects the order numbers of all 202 answers and finds duplicates. A path with
// two numbers violates the contract even if both orders exist.
func (j *checker) collectPromises() {
	for _, k := range j.Result.Holders {
		if k.Doubled {
			j.addDifference(ruleDouble, "buyer %d got %v for one path", k.BuyerID, k.OrderSns)
		}
		for _, sn := range k.OrderSns {
			if other, known := j.promisedTo[sn]; known {
				j.addDifference(ruleDouble, "order %s went to buyers %d, %d", sn, other, k.BuyerID)
			}
			j.promisedTo[sn] = k.BuyerID
		}
	}
	j.Promised = len(j.promisedTo)
}

// checkBuyer compares one buyer's answers with the buyer's own list of orders. It reads with that
// buyer's token, so that it also detects other buyers' orders in the list. A number in a 202 that
// the list lacks is read on its own.
func (j *checker) checkBuyer(ctx context.Context, k loadgen.Holder) {
	c, err := j.client(k.BuyerID)
	var list []listedOrder
	if err == nil {
		list, err = orders(ctx, ofBuyer(ctx, c), j.Plan.GoodsID)
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
		j.checkListedOrder(k, o)
	}
	if j.Limit > 0 && active > j.Limit {
		j.addDifference(ruleLimit, "buyer %d has %d units of %d", k.BuyerID, active, j.Limit)
	}
	for _, sn := range k.OrderSns {
		if !listed[sn] {
			j.checkUnlistedOrder(ctx, c, k.BuyerID, sn)
		}
	}
}

// checkListedOrder checks an order of its buyer's list. An order without a 202 is no difference if
// the buyer's call ended without an answer: that answer may have been the 202.
func (j *checker) checkListedOrder(k loadgen.Holder, o listedOrder) {
	if _, twice := j.found[o.OrderSn]; twice {
		j.addDifference(ruleDouble, "order %s is in the lists twice", o.OrderSn)
	}
	j.found[o.OrderSn] = o
	if _, accepted := j.promisedTo[o.OrderSn]; !accepted && k.Uncertain {
		j.Found++
	} else if !accepted {
		j.addDifference(ruleUnreported, "buyer %d has order %s, no 202", k.BuyerID, o.OrderSn)
	}
	if o.Quantity != k.Quantity {
		j.addDifference(ruleLedger, "order %s: %d units, not %d", o.OrderSn, o.Quantity, k.Quantity)
	}
	if o.BuyerID != strconv.FormatInt(k.BuyerID, 10) {
		j.addDifference(ruleDouble, "order %s of buyer %d is buyer %s's", o.OrderSn, k.BuyerID,
			o.BuyerID)
	}
	j.checkStatus(k.BuyerID, o.OrderSn, o.Status)
}

// checkStatus counts an order's status and reports whether the order was written. An accepted order
// must leave the queue and must not fail. No virtual buyer cancels, so a cancelled order of an
// exclusive sale is a failed one.
func (j *checker) checkStatus(buyer int64, sn, status string) bool {
	j.Orders[status]++
	rule := ruleFailed
	switch {
	case status == "created", status == "paid", status == "expired",
		status == "cancelled" && !j.Exclusive:
		return true
	case status == "queued":
		rule = ruleFinal
	}
	j.addDifference(rule, "order %s of buyer %d is %s", sn, buyer, status)
	return false
}

// checkUnlistedOrder reads an accepted order that its buyer's list lacks. An order that exists but
// is in no list is another defect than a lost order.
func (j *checker) checkUnlistedOrder(
	ctx context.Context, c apiclient.Client, buyer int64, sn string,
) {
	var o listedOrder
	a, err := readWithRetry(ctx, func() (*http.Response, error) {
		return c.API().FindOrder(ctx, sn)
	})
	if err == nil {
		err = a.Into(&o)
	}
	if err != nil {
		j.addDifference(ruleLost, "buyer %d got a 202 for order %s: %v", buyer, sn, err)
	} else if j.checkStatus(buyer, sn, o.Status) {
		j.addDifference(ruleLost, "order %s of buyer %d is %s and in no list", sn, buyer, o.Status)
	}
}
