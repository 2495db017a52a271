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
	// memoryBytes bounds a Memory. That is some 600,000 keys of buckets and windows.
	memoryBytes = 128 << 20
	// entryBytes is what a limiter takes beside its key, with its place in a map that grows by
	// doubling. engineBytes is what the state of another algorithm than a bucket's takes beside it.
	// loggedBytes is what an admission or a part of a window takes in a log.
	entryBytes  = 176
	engineBytes = 64
	loggedBytes = 16

	memoryShards = 64
)

// Memory holds limiters of every algorithm in this process, by key. It drops limiters that are full
// again, as Redis does by their TTL. Beyond 128 MB it drops others early: such a key is a new one
// again, which admits its burst and no more. It is safe for many goroutines.
type Memory struct {
	now    func() int64 // µs since the epoch
	keys   maphash.Seed
	spaces maphash.Seed // another, so that a key and a space cannot change places
	most   int64        // bytes
	bytes  atomic.Int64 // of all limiters, by size
	shards [memoryShards]memoryShard
}

// memoryShard has the limiters of some keys, and a lock for them. It finds them by the hash that
// chose the shard. A limiter replaces another one with the same hash. Nobody can choose such keys,
// because the seeds are secret.
type memoryShard struct {
	mu      sync.Mutex
	entries map[uint64]*entry
	newest  *Params // of the newest limiter; many keys have the same
}

// entry is the limiter of a key in a space.
type entry struct {
	key, space string
	params     *Params     // shared, never written
	other      engine      // nil for a bucket
	bucket     bucketState // in one piece with the entry, as most limiters are buckets
	fullAt     int64       // µs; from then on it equals a new limiter
	size       int64       // bytes; 0 if it is not in the map
}

func newEntry(r *Request, t *Params, now int64) *entry {
	e := &entry{key: r.Key, space: r.Space, params: t}
	if t.family() != bucketFamily {
		e.other = newEngine(t, now)
	}
	return e
}

// decide writes to d, which is zero.
func (e *entry) decide(now int64, a ask, d *answer) {
	if e.other == nil {
		e.bucket.decide(e.params, now, a, d)
		return
	}
	*d = e.other.decide(e.params, now, a)
}

func (e *entry) refund(now, mark, n int64) {
	if e.other == nil {
		e.bucket.refund(e.params, now, mark, n)
		return
	}
	e.other.refund(e.params, now, mark, n)
}

// NewMemory makes an empty store on the clock now; nil is this process's clock.
func NewMemory(now func() time.Time) *Memory {
	clock := steadyClock()
	if now != nil {
		clock = func() int64 { return now().UnixMicro() }
	}
	m := &Memory{
		now: clock, keys: maphash.MakeSeed(), spaces: maphash.MakeSeed(), most: memoryBytes,
	}
	for i := range m.shards {
		m.shards[i].entries = map[uint64]*entry{}
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
		m.take(&requests[i], &decisions[i])
	}
	return decisions, nil
}

// Take decides one request. It writes the decision to its place, because every copy of one costs as
// much as the arithmetic. The error is ErrPermits.
func (m *Memory) Take(r *Request, d *Decision) error {
	if err := r.Validate(); err != nil {
		return err
	}
	m.take(r, d)
	return nil
}

// hash is the key of a limiter in its shard's map, which hash % memoryShards chooses.
func (m *Memory) hash(r *Request) uint64 {
	return maphash.String(m.keys, r.Key) ^ maphash.String(m.spaces, r.Space)
}

func (m *Memory) take(r *Request, d *Decision) {
	hash := m.hash(r)
	shard := &m.shards[hash%memoryShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := m.now()
	s := shard.entry(hash, now, r)
	var a answer
	s.decide(now, r.ask(), &a)
	s.fullAt = max(s.fullAt, now+a.reset+s.params.IdleLifetime().Microseconds(),
		s.bucket.drainedAt())
	if a.allowed {
		m.put(shard, hash, now, s)
	}
	a.write(d, now)
}

// IdleLifetime is how long a store keeps a full limiter where a new one is not full.
func (t *Params) IdleLifetime() time.Duration {
	if t.Kind == KindBursty || t.Kind == KindLocal && t.limit.Value().Algorithm == SmoothWarmingUp {
		return maxInterval
	}
	return 0
}

// Refund returns the permits that the decision took. It credits no permits that have drained,
// belong to a window that is over, or were followed by others in a bucket.
func (m *Memory) Refund(_ context.Context, taken Decision, r Request) error {
	if err := r.Validate(); err != nil {
		return err
	}
	hash := m.hash(&r)
	shard := &m.shards[hash%memoryShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := m.now()
	if s := shard.find(hash, &r); s != nil && s.params.family() == r.Params.family() {
		shard.with(s, &r, now).refund(now, r.Params.RefundMark(taken), r.N)
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

// find returns the stored limiter of a request, or nil.
func (h *memoryShard) find(hash uint64, r *Request) *entry {
	if s := h.entries[hash]; s != nil && s.key == r.Key && s.space == r.Space {
		return s
	}
	return nil
}

// entry is the limiter of a request, or a new one that is not stored yet: a denial
// stores nothing.
func (h *memoryShard) entry(hash uint64, now int64, r *Request) *entry {
	if s := h.find(hash, r); s != nil {
		return h.with(s, r, now)
	}
	return newEntry(r, h.shared(&r.Params), now)
}

// shared returns params that several limiters have in common.
func (h *memoryShard) shared(t *Params) *Params {
	if h.newest == nil || *h.newest != *t {
		h.newest = new(*t)
	}
	return h.newest
}

// put stores a limiter that has admitted a request. It evicts others for a new key, and while the
// store is too large.
func (m *Memory) put(shard *memoryShard, hash uint64, now int64, s *entry) {
	if s.size == s.bytes() && m.bytes.Load() <= m.most {
		return
	}
	if old := shard.entries[hash]; old != nil {
		m.bytes.Add(-old.size)
		delete(shard.entries, hash)
	}
	m.evict(shard, now)
	if s.size == 0 {
		s.key = strings.Clone(s.key) // it may be a part of a long string, such as a token
	}
	shard.entries[hash], s.size = s, s.bytes()
	m.bytes.Add(s.size)
}

// bytes is the size of a limiter in memory.
func (e *entry) bytes() int64 {
	n := entryBytes + int64(len(e.key))
	if e.other == nil {
		return n
	}
	n += engineBytes
	if log, ok := e.other.(*logEngine); ok {
		n += loggedBytes * int64(cap(log.entries))
	}
	return n
}

// with changes the params and keeps the permits taken. Another family of algorithms
// cannot read the state, and starts a new limiter.
func (h *memoryShard) with(s *entry, r *Request, now int64) *entry {
	if *s.params == r.Params {
		return s
	}
	own := h.shared(&r.Params) // storing their address would put each request on the heap
	if s.params.family() != own.family() {
		return newEntry(r, own, now)
	}
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

// evict examines a few limiters and drops those that are full. Memory then follows the load without
// a background goroutine. A map's iteration begins at a random key, so evict reaches all of them. A
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
