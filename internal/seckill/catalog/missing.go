package catalog

import (
	"sync"
	"time"
)

const (
	// MissingTTL is how long a node answers "no such sale" from memory. A sale that another node
	// exposes is visible after that time at the latest.
	MissingTTL = time.Second
	// maxMissing bounds the table, because callers choose the ids: some 40 bytes each.
	maxMissing = 10_000
)

// recentIDs remembers goods ids for MissingTTL, so that a repeated request with one of them costs
// neither a script nor a query. A SaleReader has one set of ids that name no exposed sale, and one
// of ids whose rest this node has ended. It is safe for concurrent use.
type recentIDs struct {
	mu         sync.Mutex
	generation int // counts the calls of forget
	putAt      map[int64]time.Time
}

// has reports whether a goods id was put a moment ago.
func (m *recentIDs) has(goodsID int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, found := m.putAt[goodsID]
	return found && time.Since(at) < MissingTTL
}

// currentGeneration returns what put needs. Its caller must call it before the read whose result it
// puts.
func (m *recentIDs) currentGeneration() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation
}

// put remembers a goods id, unless forget was called since generation was current: the caller's
// read may then be older than the exposure of the sale. A full table is emptied first.
func (m *recentIDs) put(goodsID int64, generation int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.generation != generation {
		return
	}
	if m.putAt == nil || len(m.putAt) >= maxMissing {
		m.putAt = make(map[int64]time.Time)
	}
	m.putAt[goodsID] = time.Now()
}

// forget removes a goods id whose sale was exposed, and makes put ignore reads that have begun.
func (m *recentIDs) forget(goodsID int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
	delete(m.putAt, goodsID)
}
