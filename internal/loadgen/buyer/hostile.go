package buyer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
)

// The steps of a hostile buyer. The API must refuse each.
const (
	StepReplay      Step = "replay"       // buy with another buyer's path
	StepForge       Step = "forge"        // buy with an invented path
	StepReadOther   Step = "read-other"   // read another buyer's order
	StepCancelOther Step = "cancel-other" // cancel another buyer's order
	StepReadUnknown Step = "read-unknown" // read an order that does not exist
)

// Attack runs a hostile buyer with a valid token. It makes each possible attempt once and returns
// one line for each that succeeded. Attempts on others need a captured path or order. A call
// without an answer is not a breach.
func (b Buyer) Attack(ctx context.Context, captured *Captured) (breaches []string) {
	forged := make([]byte, 16)
	_, _ = rand.Read(forged) // never fails (crypto/rand)
	t := Result{due: b.Due}
	attempt := func(step Step, method, path string) {
		if ctx.Err() != nil {
			return
		}
		a, err := b.callOnce(ctx, &t, 0, step, method, path)
		if err == nil && a.Status < 400 {
			breaches = append(breaches, fmt.Sprintf("buyer %d: %s: %s %s answered %d %s",
				b.ID, step, method, path, a.Status, a.Reason))
		}
	}
	buy := "/decrStock?goodsId=" + b.GoodsID
	attempt(StepForge, http.MethodPost, "/"+hex.EncodeToString(forged)+buy)
	attempt(StepReadUnknown, http.MethodGet, "/orders/"+rand.Text())
	path, orderSn := captured.ofOther(b.ID, int(forged[0]))
	if path != "" {
		attempt(StepReplay, http.MethodPost, "/"+path+buy)
	}
	if orderSn != "" {
		attempt(StepReadOther, http.MethodGet, "/orders/"+orderSn)
		attempt(StepCancelOther, http.MethodPost, "/orders/"+orderSn+"/cancel")
	}
	return breaches
}

// Captured holds the newest random paths and order numbers of all buyers. Hostile buyers attack
// those of others. It is safe for concurrent use.
type Captured struct {
	mu            sync.Mutex
	paths, orders []owned
}

// owned is a path or an order number with its owner.
type owned struct {
	owner int64
	value string
}

// maxCaptured bounds each list, so that a long run needs no more memory.
const maxCaptured = 256

// AddPath records a path that a buyer received.
func (c *Captured) AddPath(owner int64, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths = newest(c.paths, owned{owner, path})
}

// AddOrder records a buyer's order number.
func (c *Captured) AddOrder(owner int64, orderSn string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = newest(c.orders, owned{owner, orderSn})
}

// newest appends a value and drops the oldest of a full list.
func newest(list []owned, o owned) []owned {
	return append(list[max(0, len(list)+1-maxCaptured):], o)
}

// ofOther returns a path and an order of other buyers; empty if there are none yet. A random start
// spreads the attacks over the captured values.
func (c *Captured) ofOther(buyer int64, start int) (path, orderSn string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	find := func(list []owned) string {
		for i := range list {
			if o := list[(i+start)%len(list)]; o.owner != buyer {
				return o.value
			}
		}
		return ""
	}
	return find(c.paths), find(c.orders)
}
