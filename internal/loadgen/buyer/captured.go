package buyer

import "sync"

// Captured holds the newest random paths and order numbers of all buyers. Hostile buyers attack
// those of others. It is safe for concurrent use.
type Captured struct {
	mu     sync.Mutex
	paths  ring
	orders ring
}

// owned is a path or an order number with its owner.
type owned struct {
	owner int64
	value string
}

// ring keeps the newest ringSize values.
type ring struct {
	values []owned
	next   int
}

const ringSize = 256

func (r *ring) put(o owned) {
	if len(r.values) < ringSize {
		r.values = append(r.values, o)
		return
	}
	r.values[r.next] = o
	r.next = (r.next + 1) % ringSize
}

// ofOther returns a value that belongs to another buyer; "" if there is none.
func (r *ring) ofOther(buyer int64, start int) string {
	for i := range r.values {
		if o := r.values[(i+start)%len(r.values)]; o.owner != buyer {
			return o.value
		}
	}
	return ""
}

// AddPath records a path that a buyer received.
func (c *Captured) AddPath(owner int64, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths.put(owned{owner, path})
}

// AddOrder records a buyer's order number.
func (c *Captured) AddOrder(owner int64, orderSn string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders.put(owned{owner, orderSn})
}

// ofOther returns a path and an order of other buyers; empty if there are none yet.
func (c *Captured) ofOther(buyer int64, start int) (path, orderSn string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paths.ofOther(buyer, start), c.orders.ofOther(buyer, start)
}
