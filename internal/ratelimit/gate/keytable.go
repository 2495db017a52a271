package gate

import (
	"hash/maphash"
	"sync"
	"time"
)

// keyTable holds the keyStates in use, in shards with a lock each. It drops idle ones when it adds
// new ones, so it needs no background goroutine. A key is in use while its limiter is in Redis. So
// the table's bound is also one for the keys that this node has in Redis.
type keyTable struct {
	seed   maphash.Seed
	most   int // keys of a shard
	shards [64]struct {
		mu   sync.Mutex
		keys map[string]*keyState
	}
}

func newKeyTable(most int) *keyTable {
	t := &keyTable{seed: maphash.MakeSeed()}
	t.most = max(1, most/len(t.shards))
	for i := range t.shards {
		t.shards[i].keys = map[string]*keyState{}
	}
	return t
}

// with calls use with the key's state locked. It returns false and calls nothing if the key is new
// and there is no room for it.
func (t *keyTable) with(key string, now time.Time, use func(*keyState)) bool {
	k := t.lock(key, now, true)
	if k == nil {
		return false
	}
	defer k.mu.Unlock()
	use(k)
	return true
}

// update is with for a key that the table may have dropped: it adds none.
func (t *keyTable) update(key string, use func(*keyState)) {
	if k := t.lock(key, time.Time{}, false); k != nil {
		defer k.mu.Unlock()
		use(k)
	}
}

// lock returns the key's state, locked. It is nil if the key is not in the table and must not be
// added.
func (t *keyTable) lock(key string, now time.Time, add bool) *keyState {
	shard := &t.shards[maphash.String(t.seed, key)%uint64(len(t.shards))]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	k := shard.keys[key]
	if k == nil {
		if !add {
			return nil
		}
		dropIdle(shard.keys, now)
		if len(shard.keys) >= t.most {
			return nil
		}
		k = &keyState{}
		shard.keys[key] = k
	}
	k.mu.Lock()
	return k
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
