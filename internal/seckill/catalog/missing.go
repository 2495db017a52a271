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

// recentIDs remembers goods ids for MissingTTL: those that name no exposed sale, or those whose
// rest this node has ended, so that a repeated one costs neither a script nor a query. It is safe
// for concurrent use.
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

// present returns the generation. A caller of put asks for it before its read.
func (m *recentIDs) present() (generation int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation
}

// put remembers a goods id that a read has found, unless forget was called since the read began:
// the read may then be older than the exposure of the sale. A full table starts again.
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

// forget forgets one goods id, which is exposed now.
func (m *recentIDs) forget(goodsID int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
	delete(m.putAt, goodsID)
}
