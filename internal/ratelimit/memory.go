package ratelimit

import (
	"context"
	"sync"
	"time"
)

// memoryKeys bounds a Memory, to about 100 MB: a key needs some 200 bytes.
const memoryKeys = 500_000

// Memory holds limiters of every algorithm in this process, by key. It drops limiters that are full
// again, as Redis does by their TTL. Beyond 500,000 keys it drops others early. It is safe for many
// goroutines.
type Memory struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	params Params
	engine engine
	fullAt int64 // µs; from then on it equals a new limiter
}

// NewMemory makes an empty store on the clock now; nil is this process's clock.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = steadyClock()
	}
	return &Memory{now: now, entries: map[string]*entry{}}
}

// TakeEach decides the requests in order. The error is ErrPermits.
func (m *Memory) TakeEach(_ context.Context, requests ...Request) ([]Decision, error) {
	for _, r := range requests {
		if err := r.Validate(); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	decisions := make([]Decision, len(requests))
	for i, r := range requests {
		decisions[i] = m.take(now, r)
	}
	return decisions, nil
}

func (m *Memory) take(now int64, r Request) Decision {
	s := m.entry(now, r)
	d := s.engine.decide(now, r)
	s.fullAt = max(s.fullAt, now+d.ResetAfter.Microseconds()+s.params.idleLifetime())
	if b, ok := s.engine.(*stateEngine[bucketState]); ok {
		s.fullAt = max(s.fullAt, b.state.drainedAt())
	}
	if d.Allowed {
		m.put(now, r.Key, s)
	}
	d.At = time.UnixMicro(now).UTC()
	return d
}

// idleLifetime is how many µs a full limiter is kept where a new one is not full.
func (t Params) idleLifetime() int64 {
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
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	if s := m.entries[r.Key]; s != nil && s.params.family() == r.Params.family() {
		s.with(r.Params, now).engine.refund(now, r.Params.RefundMark(taken), r.N)
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
func (m *Memory) entry(now int64, a Request) *entry {
	if s := m.entries[a.Key]; s != nil {
		return s.with(a.Params, now)
	}
	return &entry{params: a.Params, engine: newEngine(a.Params, now)}
}

// put stores a limiter and evicts others for a new key.
func (m *Memory) put(now int64, key string, s *entry) {
	if _, known := m.entries[key]; !known {
		m.evict(now)
	}
	m.entries[key] = s
}

// with changes the params and keeps the permits taken. Another family of algorithms
// cannot read the state, and starts a new limiter.
func (s *entry) with(t Params, now int64) *entry {
	if s.params == t {
		return s
	}
	if s.params.family() != t.family() {
		return &entry{params: t, engine: newEngine(t, now)}
	}
	s.engine.set(t, now)
	s.params = t
	return s
}

// family is equal for algorithms that can read each other's state. All buckets can.
func (t Params) family() string {
	switch t.Kind {
	case KindBucket, KindBursty:
		return "bucket"
	}
	return string(t.limit.Algorithm)
}

// evict examines a few limiters for each new one and drops those that are full. Memory then follows
// the load without a background goroutine. A map's iteration begins at a random key, so evict
// reaches all of them.
func (m *Memory) evict(now int64) {
	if len(m.entries) < 64 {
		return
	}
	examined := 0
	for key, s := range m.entries {
		if s.fullAt <= now || len(m.entries) >= memoryKeys {
			delete(m.entries, key)
		}
		if examined++; examined == 4 {
			return
		}
	}
}
