package ratelimit

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// memoryBytes bounds a Memory. That is some 500,000 keys of buckets and windows.
	memoryBytes = 128 << 20
	// entryBytes is what a limiter takes beside its key, with its place in a map that grows by
	// doubling. loggedBytes is what an admission or a part of a window takes in a log.
	entryBytes  = 240
	loggedBytes = 16

	memoryShards = 64
)

// Memory holds limiters of every algorithm in this process, by key. It drops limiters that are full
// again, as Redis does by their TTL. Beyond 128 MB it drops others early: such a key is a new one
// again, which admits its burst and no more. It is safe for many goroutines.
type Memory struct {
	now    func() time.Time
	seed   maphash.Seed
	most   int64        // bytes
	bytes  atomic.Int64 // of all limiters, by size
	shards [memoryShards]memoryShard
}

// memoryShard has the limiters of some keys, and a lock for them.
type memoryShard struct {
	mu      sync.Mutex
	entries map[string]*entry
	newest  *Params // of the newest limiter; many keys have the same
}

type entry struct {
	params *Params // shared, never written
	engine engine
	fullAt int64 // µs; from then on it equals a new limiter
	size   int64 // bytes
}

// NewMemory makes an empty store on the clock now; nil is this process's clock.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = steadyClock()
	}
	m := &Memory{now: now, seed: maphash.MakeSeed(), most: memoryBytes}
	for i := range m.shards {
		m.shards[i].entries = map[string]*entry{}
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

func (m *Memory) shard(key string) *memoryShard {
	return &m.shards[maphash.String(m.seed, key)%memoryShards]
}

func (m *Memory) take(r *Request) Decision {
	shard := m.shard(r.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := m.now().UnixMicro()
	s := shard.entry(now, r)
	d := s.engine.decide(now, r.ask())
	s.fullAt = max(s.fullAt, now+d.ResetAfter.Microseconds()+s.params.idleLifetime())
	if b, ok := s.engine.(*stateEngine[bucketState]); ok {
		s.fullAt = max(s.fullAt, b.state.drainedAt())
	}
	if d.Allowed {
		m.put(shard, now, r.Key, s)
	}
	d.At = time.UnixMicro(now).UTC()
	return d
}

// idleLifetime is how many µs a full limiter is kept where a new one is not full.
func (t *Params) idleLifetime() int64 {
	if t.Kind == KindBursty || t.limit.Algorithm == SmoothWarmingUp {
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
	now := m.now().UnixMicro()
	if s := shard.entries[r.Key]; s != nil && s.params.family() == r.Params.family() {
		shard.with(s, &r.Params, now).engine.refund(now, r.Params.RefundMark(taken), r.N)
	}
	return nil
}

// steadyClock is the wall clock at the start, continued by the monotonic clock. Corrections of the
// wall clock do not move it.
func steadyClock() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began)) }
}

// entry is the limiter of a request, or a new one that is not stored yet: a denial
// stores nothing.
func (h *memoryShard) entry(now int64, r *Request) *entry {
	if s := h.entries[r.Key]; s != nil {
		return h.with(s, &r.Params, now)
	}
	t := h.shared(&r.Params)
	return &entry{params: t, engine: newEngine(t, now)}
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
func (m *Memory) put(shard *memoryShard, now int64, key string, s *entry) {
	old := shard.entries[key]
	if old == s && s.size == s.bytes(key) && m.bytes.Load() <= m.most {
		return
	}
	if old != nil {
		m.bytes.Add(-old.size)
		delete(shard.entries, key)
	}
	m.evict(shard, now)
	shard.entries[key] = s
	s.size = s.bytes(key)
	m.bytes.Add(s.size)
}

// bytes is the size of a limiter in memory.
func (s *entry) bytes(key string) int64 {
	n := entryBytes + int64(len(key))
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
		return &entry{params: own, engine: newEngine(own, now)}
	}
	s.engine.set(own, now)
	s.params = own
	return s
}

// family is equal for algorithms that can read each other's state. All buckets can.
func (t *Params) family() string {
	switch t.Kind {
	case KindBucket, KindBursty:
		return "bucket"
	}
	return string(t.limit.Algorithm)
}

// evict examines a few limiters and drops those that are full. Memory then follows the load without a
// background goroutine. A map's iteration begins at a random key, so evict reaches all of them. A
// store that is too large loses all that it examines.
func (m *Memory) evict(shard *memoryShard, now int64) {
	examined := 0
	for key, s := range shard.entries {
		if s.fullAt <= now || m.bytes.Load() > m.most {
			m.bytes.Add(-s.size)
			delete(shard.entries, key)
		}
		if examined++; examined == 4 {
			return
		}
	}
}
