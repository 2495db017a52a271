package gate

import (
	"hash/maphash"
	"sync"
	"time"
)

// keyTable holds the keyStates in use, in shards with a lock each. It drops idle ones when it adds
// new ones, so it needs no background goroutine.
type keyTable struct {
	seed   maphash.Seed
	shards [64]struct {
		mu   sync.Mutex
		keys map[string]*keyState
	}
}

func newKeyTable() *keyTable {
	t := &keyTable{seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].keys = map[string]*keyState{}
	}
	return t
}

// with calls use with the key's state locked.
func (t *keyTable) with(key string, now time.Time, use func(*keyState)) {
	shard := &t.shards[maphash.String(t.seed, key)%uint64(len(t.shards))]
	shard.mu.Lock()
	k := shard.keys[key]
	if k == nil {
		dropIdle(shard.keys, now)
		k = &keyState{}
		shard.keys[key] = k
	}
	k.mu.Lock()
	shard.mu.Unlock()
	defer k.mu.Unlock()
	use(k)
}

// dropIdle examines up to four keys; a map's iteration begins anywhere.
func dropIdle(keys map[string]*keyState, now time.Time) {
	examined := 0
	for key, k := range keys {
		if examined++; examined > 4 {
			return
		}
		if k.mu.TryLock() {
			if k.idle(now) {
				delete(keys, key)
			}
			k.mu.Unlock()
		}
	}
}
