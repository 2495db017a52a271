package verdict

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// Case is what is to be judged.
type Case struct {
	GoodsID string
	Result  loadgen.Result
	Keeper  apiclient.Client // the sale's merchant, or an operator
	Buyer   func(id int64) (apiclient.Client, error)
	// Limit is how many units a buyer may have, and Mine says that nobody else has bought or will: the rules that need
	// either are left out without it.
	Limit int64
	Mine  bool
}

// atOnce is how many buyers' books are read at the same time.
const atOnce = 32

// judge is one judging.
type judge struct {
	Case
	*Verdict
	mu    sync.Mutex
	read  bool             // the ledger could be
	told  map[string]int64 // promised order numbers, and whose
	found map[string]orderLine
}

// Judge waits until nothing of the sale is pending, reads the books and compares. What can't be read before ctx ends is a
// difference too.
func Judge(ctx context.Context, c Case) Verdict {
	j := &judge{Case: c, Verdict: newVerdict(), told: map[string]int64{}, found: map[string]orderLine{}}
	j.promises()
	ledger, err := drained(ctx, c)
	if err != nil || ledger.Pending != 0 {
		j.differ(ruleRead, "the ledger is not drained: %d pending, %v", ledger.Pending, err)
	}
	j.Ledger, j.read = ledger, err == nil
	var readers errgroup.Group
	readers.SetLimit(atOnce)
	for _, k := range c.Result.Kept {
		readers.Go(func() error {
			j.buyer(ctx, k)
			return nil
		})
	}
	_ = readers.Wait() // what went wrong is in the verdict
	all, err := orders(ctx, c.Keeper, "/admin/sales/"+c.GoodsID+"/orders", "")
	if err != nil {
		j.differ(ruleRead, "the sale's orders: %v", err)
	} else {
		j.sale(all)
	}
	j.thieves()
	return *j.Verdict
}

// drained waits for half of the time at most: the other half is for reading.
func drained(ctx context.Context, c Case) (apiclient.Ledger, error) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(until)/2)
		defer cancel()
	}
	return c.Keeper.Drained(ctx, c.GoodsID)
}

// promises counts the order numbers that were told, and finds those that were told twice.
func (j *judge) promises() {
	for _, k := range j.Result.Kept {
		if k.Doubled {
			j.differ(ruleDouble, "buyer %d was told two order numbers for one path: %v", k.BuyerID, k.OrderSns)
		}
		for _, sn := range k.OrderSns {
			if other, known := j.told[sn]; known {
				j.differ(ruleDouble, "order %s was promised to buyers %d and %d", sn, other, k.BuyerID)
			}
			j.told[sn] = k.BuyerID
		}
	}
	j.Promised = len(j.told)
}

// buyer compares what one buyer was told with the buyer's own list.
func (j *judge) buyer(ctx context.Context, k loadgen.Kept) {
	c, err := j.Buyer(k.BuyerID)
	var list []orderLine
	if err == nil {
		list, err = orders(ctx, c, "/orders", j.GoodsID)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.differ(ruleRead, "buyer %d's orders: %v", k.BuyerID, err)
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
		j.differ(ruleLimit, "buyer %d has %d units of %d", k.BuyerID, active, j.Limit)
	}
	for _, sn := range k.OrderSns {
		if !listed[sn] {
			j.missing(ctx, c, k.BuyerID, sn)
		}
	}
}

// listed judges an order that is in its buyer's list.
func (j *judge) listed(k loadgen.Kept, o orderLine) {
	if _, twice := j.found[o.OrderSn]; twice {
		j.differ(ruleDouble, "order %s is in the lists twice", o.OrderSn)
	}
	j.found[o.OrderSn] = o
	j.Orders[o.Status]++
	if _, told := j.told[o.OrderSn]; !told {
		if k.Unsure {
			j.Found++
		} else {
			j.differ(ruleUntold, "buyer %d has order %s and was never told", k.BuyerID, o.OrderSn)
		}
	}
	if o.Quantity != k.Quantity {
		j.differ(ruleLedger, "order %s is of %d units, asked were %d", o.OrderSn, o.Quantity, k.Quantity)
	}
	j.status(k.BuyerID, o.OrderSn, o.Status)
}

func (j *judge) status(buyer int64, sn, status string) {
	switch status {
	case "queued":
		j.differ(ruleFinal, "order %s of buyer %d is still queued", sn, buyer)
	case "failed":
		j.differ(ruleKept, "order %s of buyer %d was promised and has failed", sn, buyer)
	}
}

// missing asks for a promised order that is in no list: the API may know what has become of it.
func (j *judge) missing(ctx context.Context, c apiclient.Client, buyer int64, sn string) {
	var o orderLine
	a, err := insist(ctx, c, "/orders/"+sn)
	if err == nil {
		err = a.Into(&o)
	}
	if err != nil {
		j.differ(ruleLost, "buyer %d was promised order %s: %v", buyer, sn, err)
		return
	}
	j.Orders[o.Status]++
	if o.Status == "queued" || o.Status == "failed" {
		j.status(buyer, sn, o.Status)
		return
	}
	j.differ(ruleLost, "order %s of buyer %d is %s and in no list", sn, buyer, o.Status)
}

func (j *judge) thieves() {
	for _, b := range j.Result.Breaches {
		j.differ(ruleThieves, "%s", b)
	}
	for range j.Result.Breached - len(j.Result.Breaches) {
		j.differ(ruleThieves, "another")
	}
}

// pauseBetween is the wait before a book that could not be read is asked for again.
const pauseBetween = 50 * time.Millisecond
