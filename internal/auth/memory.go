package auth

import (
	"crypto/sha256"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

type key [sha256.Size]byte

func keyOf(token string) key { return sha256.Sum256([]byte(token)) }

type entry struct {
	actor seckill.Actor
	exp   time.Time
}

// memory remembers verified tokens in two generations. When the younger one is full it becomes the older, and the
// older is forgotten whole: bounded, with no list to keep in order, and what is asked for stays.
type memory struct {
	half int

	mu         sync.RWMutex
	young, old map[key]entry
}

func newMemory(size int) *memory { return &memory{half: size / 2, young: map[key]entry{}} }

func (m *memory) get(k key, now time.Time) (seckill.Actor, bool) {
	m.mu.RLock()
	e, young := m.young[k]
	ok := young
	if !young {
		e, ok = m.old[k]
	}
	m.mu.RUnlock()
	switch {
	case !ok:
		return seckill.Actor{}, false
	case !now.Before(e.exp):
		m.drop(k)
		return seckill.Actor{}, false
	case !young:
		m.put(k, e)
	}
	return e.actor, true
}

func (m *memory) put(k key, e entry) {
	if m.half <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.young) >= m.half {
		m.old, m.young = m.young, make(map[key]entry, m.half)
	}
	m.young[k] = e
}

func (m *memory) drop(k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.young, k)
	delete(m.old, k)
}
