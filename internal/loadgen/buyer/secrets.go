package buyer

import (
	"sync"
)

// Loot is what thieves know of others: their newest random paths and order numbers. It is safe for many at once.
type Loot struct {
	mu     sync.Mutex
	paths  ring
	orders ring
}

// owned is a thing and whose it is.
type owned struct {
	owner int64
	what  string
}

// ring keeps the newest of what it is given.
type ring struct {
	kept []owned
	next int
}

const ringSize = 256

func (r *ring) put(o owned) {
	if len(r.kept) < ringSize {
		r.kept = append(r.kept, o)
		return
	}
	r.kept[r.next] = o
	r.next = (r.next + 1) % ringSize
}

// of somebody else than the thief; false where there is none.
func (r *ring) of(thief int64, turn int) (string, bool) {
	for i := range r.kept {
		if o := r.kept[(i+turn)%len(r.kept)]; o.owner != thief {
			return o.what, true
		}
	}
	return "", false
}

// Path takes note of a path that was given to a buyer.
func (l *Loot) Path(owner int64, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths.put(owned{owner, path})
}

// Order takes note of a buyer's order.
func (l *Loot) Order(owner int64, orderSn string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders.put(owned{owner, orderSn})
}

// pick is a path and an order of others; empty where there are none yet.
func (l *Loot) pick(thief int64, turn int) (path, orderSn string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	path, _ = l.paths.of(thief, turn)
	orderSn, _ = l.orders.of(thief, turn)
	return path, orderSn
}
