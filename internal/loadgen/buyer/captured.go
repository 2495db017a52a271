package buyer

import "sync"

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
