package ratelimit

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// memoryBytes bounds a Memory. That is some 500,000 keys of buckets and windows.
	memoryBytes = 128 << 20
	// entryBytes is what a limiter takes beside its key, with its place in a map that grows by
	// doubling. engineBytes is what the state of another algorithm than a bucket's takes beside it.
	// loggedBytes is what an admission or a part of a window takes in a log.
	entryBytes  = 240
	engineBytes = 64
	loggedBytes = 16

	memoryShards = 64
)

// Memory holds limiters of every algorithm in this process, by key. It drops limiters that are full
// again, as Redis does by their TTL. Beyond 128 MB it drops others early: such a key is a new one
// again, which admits its burst and no more. It is safe for many goroutines.
type Memory struct {
	now    func() int64 // µs since the epoch
	seed   maphash.Seed
	most   int64        // bytes
	bytes  atomic.Int64 // of all limiters, by size
	shards [memoryShards]memoryShard
}

// memoryShard has the limiters of some keys, and a lock for them.
type memoryShard struct {
	mu      sync.Mutex
	entries map[name]*entry
	newest  *Params // of the newest limiter; many keys have the same
}

// name is the space and the key of a limiter.
type name struct{ space, key string }

type entry struct {
	params *Params // shared, never written
	engine engine
	fullAt int64                    // µs; from then on it equals a new limiter
	size   int64                    // bytes
	stored bool                     // in its shard's map
	bucket stateEngine[bucketState] // the engine of most limiters, in one piece with its entry
}

func newEntry(t *Params, now int64) *entry {
	e := &entry{params: t}
	if t.family() == bucketFamily {
		e.bucket.params, e.engine = t, &e.bucket
	} else {
		e.engine = newEngine(t, now)
	}
	return e
}

// NewMemory makes an empty store on the clock now; nil is this process's clock.
func NewMemory(now func() time.Time) *Memory {
	clock := steadyClock()
	if now != nil {
		clock = func() int64 { return now().UnixMicro() }
	}
	m := &Memory{now: clock, seed: maphash.MakeSeed(), most: memoryBytes}
	for i := range m.shards {
		m.shards[i].entries = map[name]*entry{}
	}
	return m
}

// TakeEach decides the requests in order. The error is ErrPermits.
func (m *Memory) TakeEach(_ context.Context, requests ...Request) ([]Decision, error) {
	for i := range requests {
		if err := requests[i].Validate(); err != nil {
			return nil, err
		}
	}
	decisions := make([]Decision, len(requests))
	for i := range requests {
		decisions[i] = m.take(&requests[i])
	}
	return decisions, nil
}

// Take decides one request. The error is ErrPermits.
func (m *Memory) Take(r *Request) (Decision, error) {
	if err := r.Validate(); err != nil {
		return Decision{}, err
	}
	return m.take(r), nil
}

func (r *Request) name() name { return name{r.Space, r.Key} }

func (m *Memory) shard(key string) *memoryShard {
	return &m.shards[maphash.String(m.seed, key)%memoryShards]
}

func (m *Memory) take(r *Request) Decision {
	shard := m.shard(r.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := m.now()
	s := shard.entry(now, r)
	d := s.engine.decide(now, r.ask())
	s.fullAt = max(s.fullAt, now+d.ResetAfter.Microseconds()+s.params.idleLifetime())
	s.fullAt = max(s.fullAt, s.bucket.state.drainedAt())
	if d.Allowed {
		m.put(shard, now, r.name(), s)
	}
	d.At = time.UnixMicro(now).UTC()
	return d
}

// idleLifetime is how many µs a full limiter is kept where a new one is not full.
func (t *Params) idleLifetime() int64 {
	if t.Kind == KindBursty || t.limit.Value().Algorithm == SmoothWarmingUp {
		return maxInterval.Microseconds()
	}
	return 0
}

// Refund returns the permits that the decision took. It credits no permits that have drained, belong
// to a window that is over, or were followed by others in a bucket.
func (m *Memory) Refund(_ context.Context, taken Decision, r Request) error {
	if err := r.Validate(); err != nil {
		return err
	}
	shard := m.shard(r.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := m.now()
	if s := shard.entries[r.name()]; s != nil && s.params.family() == r.Params.family() {
		shard.with(s, &r.Params, now).engine.refund(now, r.Params.RefundMark(taken), r.N)
	}
	return nil
}

// steadyClock is the wall clock at the start, continued by the monotonic clock. Corrections of the
// wall clock do not move it.
func steadyClock() func() int64 {
	began := time.Now()
	micros := began.UnixMicro()
	return func() int64 { return micros + time.Since(began).Microseconds() }
}

// entry is the limiter of a request, or a new one that is not stored yet: a denial
// stores nothing.
func (h *memoryShard) entry(now int64, r *Request) *entry {
	if s := h.entries[r.name()]; s != nil {
		return h.with(s, &r.Params, now)
	}
	return newEntry(h.shared(&r.Params), now)
}

// shared returns params that several limiters have in common.
func (h *memoryShard) shared(t *Params) *Params {
	if h.newest == nil || *h.newest != *t {
		own := *t
		h.newest = &own
	}
	return h.newest
}

// put stores a limiter that has admitted a request. It evicts others for a new key, and while the
// store is too large.
func (m *Memory) put(shard *memoryShard, now int64, n name, s *entry) {
	if s.stored && s.size == s.bytes(n) && m.bytes.Load() <= m.most {
		return
	}
	if old := shard.entries[n]; old != nil {
		m.bytes.Add(-old.size)
		delete(shard.entries, n)
	}
	m.evict(shard, now)
	n.key = strings.Clone(n.key) // it may be a part of a long string, such as a token
	shard.entries[n] = s
	s.stored, s.size = true, s.bytes(n)
	m.bytes.Add(s.size)
}

// bytes is the size of a limiter in memory.
func (s *entry) bytes(of name) int64 {
	n := entryBytes + int64(len(of.key))
	if s.engine == engine(&s.bucket) {
		return n
	}
	n += engineBytes
	if log, ok := s.engine.(*logEngine); ok {
		n += loggedBytes * int64(cap(log.entries))
	}
	return n
}

// with changes the params and keeps the permits taken. Another family of algorithms
// cannot read the state, and starts a new limiter.
func (h *memoryShard) with(s *entry, t *Params, now int64) *entry {
	if *s.params == *t {
		return s
	}
	own := h.shared(t) // storing t itself would put each request on the heap
	if s.params.family() != own.family() {
		return newEntry(own, now)
	}
	s.engine.set(own, now)
	s.params = own
	return s
}

const bucketFamily = "bucket"

// family is equal for algorithms that can read each other's state. All buckets can.
func (t *Params) family() string {
	switch t.Kind {
	case KindBucket, KindBursty:
		return bucketFamily
	}
	return string(t.limit.Value().Algorithm)
}

// evict examines a few limiters and drops those that are full. Memory then follows the load without a
// background goroutine. A map's iteration begins at a random key, so evict reaches all of them. A
// store that is too large loses all that it examines. A small one loses nothing, because its keys
// would be made again and again.
func (m *Memory) evict(shard *memoryShard, now int64) {
	if m.bytes.Load() < m.most/4 {
		return
	}
	examined := 0
	for n, s := range shard.entries {
		if s.fullAt <= now || m.bytes.Load() > m.most {
			m.bytes.Add(-s.size)
			delete(shard.entries, n)
		}
		if examined++; examined == 4 {
			return
		}
	}
}
