package gate

import (
	"hash/maphash"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
)

const (
	denialAtMost = time.Second
	// askEvery is how soon a node that leases asks again after a denial: long
	// enough for some permits to have come together.
	askEvery  = 5 * time.Millisecond
	leaseLife = time.Second
	// hot: a lease that was used up sooner is followed by one twice as large.
	hot        = 100 * time.Millisecond
	mostInTrip = 1000
)

// keyState is what a node knows of one limiter in Redis: a denial that still
// holds, permits in hand, those it owes, and the ask that is under way.
type keyState struct {
	mu    sync.Mutex
	terms ratelimit.Terms

	deny  ratelimit.Decision
	until time.Time // until then the denial holds
	retry time.Time // from then on Redis may say yes
	n     int64     // of the ask that was denied
	wait  time.Duration

	left    int64
	last    time.Time // when the last of them is good
	step    time.Duration
	expires time.Time
	after   ratelimit.Decision

	owed   int64
	unowed time.Time // by then Redis' bucket is full again, had it been told at once or not

	flight  *flight
	waiting int64
	size    int64
	flown   time.Time
}

// flight is an ask that callers of one key wait for together.
type flight struct {
	done chan struct{}
	err  error
}

// known is what a keyState can say without Redis.
type known struct {
	decision ratelimit.Decision
	event    Event
	ok       bool
}

// use drops what was learnt under other terms.
func (k *keyState) use(t ratelimit.Terms) {
	if k.terms != t {
		k.terms, k.until, k.left, k.size, k.owed = t, time.Time{}, 0, 1, 0
	}
}

// owe adds permits that were given without Redis, or takes away those that came back. All nodes together owe two bursts at
// most, theirs and the one that has come together in Redis meanwhile: in a longer outage Redis has not given the rest
// either, and nobody is to wait for it twice. Windows know no debt.
func (k *keyState) owe(now time.Time, n, nodes int64) {
	if k.terms.Kind != ratelimit.KindBucket {
		return
	}
	most := max(1, 2*k.terms.Free/k.terms.Cost)
	k.owed = max(0, min(k.owing(now)+n, max(1, most/max(1, nodes))))
	k.unowed = now.Add(k.terms.Earn(most))
}

func (k *keyState) owing(now time.Time) int64 {
	if now.After(k.unowed) {
		return 0
	}
	return k.owed
}

// answer says no from memory or yes from the lease.
func (k *keyState) answer(now time.Time, a ratelimit.Ask) known {
	// Who can wait longer can be admitted sooner, by as much.
	sooner := max(0, a.MaxWait-k.wait)
	if now.Before(k.until.Add(-sooner)) && a.N >= k.n {
		d := k.deny
		d.RetryAfter = max(time.Microsecond, k.retry.Add(-sooner).Sub(now))
		if d.Never {
			d.RetryAfter = 0
		}
		d.ResetAfter = max(0, d.ResetAfter-now.Sub(d.At))
		return known{d, EventByMemory, true}
	}
	if a.N != 1 || k.left == 0 || now.After(k.expires) {
		return known{}
	}
	wait := max(0, k.last.Add(-time.Duration(k.left-1)*k.step).Sub(now))
	if wait > a.MaxWait {
		return known{ratelimit.Decision{RetryAfter: wait - a.MaxWait, ResetAfter: k.after.ResetAfter, At: now}, EventByMemory, true}
	}
	k.left--
	return known{ratelimit.Decision{
		Allowed: true, Granted: 1, Wait: wait, Remaining: k.after.Remaining + k.left,
		ResetAfter: k.after.ResetAfter, At: k.after.At,
	}, EventByLease, true}
}

// want is how many permits to ask for: one for each that waits, or a lease.
func (k *keyState) want(now time.Time, lease int64) int64 {
	if now.Sub(k.flown) < hot {
		k.size = min(max(1, k.size)*2, lease)
	} else {
		k.size = 1
	}
	k.flown = now
	return min(max(k.size, k.waiting)+k.owing(now), mostInTrip)
}

// learn takes in what Redis said of an ask: first of what it gave goes what is
// owed. It gives the permits that are too many to hold: those who waited for
// them have left, or the limit has changed.
func (k *keyState) learn(now time.Time, a ratelimit.Ask, d ratelimit.Decision, lease int64) (surplus int64) {
	if k.terms != a.Terms {
		return d.Granted
	}
	if d.Allowed {
		paid := min(k.owing(now), d.Granted)
		k.owed -= min(k.owed, paid)
		k.left, k.after = min(d.Granted-paid, max(lease, k.waiting)), d
		k.last, k.expires = now.Add(d.Wait), now.Add(d.Wait+leaseLife)
		k.step = time.Duration(float64(a.Terms.Cost) / float64(a.Terms.Scale) * float64(time.Microsecond))
		if d.Wait == 0 {
			k.step = 0
		}
		// The first of them are kept; the last are the ones to wait longest for.
		k.last = k.last.Add(-time.Duration(d.Granted-k.left) * k.step)
		return d.Granted - paid - k.left
	}
	k.deny, k.n, k.wait = d, max(1, a.Least), a.MaxWait
	k.deny.At = now
	k.retry = now.Add(d.RetryAfter)
	pause := d.RetryAfter
	if lease > 1 {
		pause = max(pause, min(askEvery, a.Terms.Earn(lease)))
	}
	if d.Never {
		pause = denialAtMost
	}
	k.until = now.Add(min(pause, denialAtMost))
	return 0
}

// keyTable holds the keyStates in use. Those that know nothing any more are
// dropped as new ones come.
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

// with runs use on the key's state, locked.
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

func dropIdle(keys map[string]*keyState, now time.Time) {
	looked := 0
	for key, k := range keys {
		if looked++; looked > 4 {
			return
		}
		if k.mu.TryLock() {
			if k.flight == nil && k.waiting == 0 && k.owing(now) == 0 && now.After(k.until) && (k.left == 0 || now.After(k.expires)) {
				delete(keys, key)
			}
			k.mu.Unlock()
		}
	}
}

// leaseSize is how many permits may be held in advance under these terms.
func leaseSize(leases int64, t ratelimit.Terms) int64 {
	if leases < 2 || t.Kind != ratelimit.KindBucket {
		return 1
	}
	return max(1, min(leases, t.Earned(100*time.Millisecond), t.Free/t.Cost))
}
