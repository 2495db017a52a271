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

// TakeEach decides groups of requests in order. It takes all permits of a group or none. It returns
// one decision for each group. Errors are those of Check.
func (m *Memory) TakeEach(_ context.Context, groups ...[]Request) ([]Decision, error) {
	for _, group := range groups {
		if err := Check(group); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	decisions := make([]Decision, 0, len(groups))
	for _, group := range groups {
		decisions = append(decisions, m.takeGroup(now, group))
	}
	return decisions, nil
}

func (m *Memory) takeGroup(now int64, group []Request) Decision {
	var d Decision
	if len(group) == 1 {
		s := m.entry(now, group[0])
		if d = s.decide(now, group[0]); d.Allowed {
			m.put(now, group[0].Key, s)
		}
	} else {
		d = m.takeTogether(now, group)
	}
	d.At = time.UnixMicro(now).UTC()
	return d
}

// takeTogether decides on copies, which become the state if all requests are admitted.
func (m *Memory) takeTogether(now int64, group []Request) Decision {
	tried := make(map[string]*entry, len(group))
	var joined Decision
	for i, a := range group {
		s := tried[a.Key]
		if s == nil {
			known := m.entry(now, a)
			known.engine.status(now) // moves it to another clock, even if denied
			s = known.copied()
		}
		s = s.with(a.Params, now)
		tried[a.Key] = s
		d := s.decide(now, a)
		if i > 0 {
			d = Strictest(joined, d)
		}
		joined = d
	}
	if joined.Allowed {
		for key, s := range tried {
			m.put(now, key, s)
		}
	}
	return joined
}

func (s *entry) decide(now int64, a Request) Decision {
	d := s.engine.decide(now, a.toLimiter())
	s.fullAt = max(s.fullAt, now+d.ResetAfter.Microseconds()+s.params.idleLifetime())
	return d
}

// idleLifetime is how many µs a full limiter is kept where a new one is not full.
func (t Params) idleLifetime() int64 {
	if t.Kind == KindBursty || t.limit.Algorithm == SmoothWarmingUp {
		return maxInterval.Microseconds()
	}
	return 0
}

func (a Request) toLimiter() request {
	least := a.Min
	if least == 0 {
		least = a.N
	}
	return request{n: a.N, min: least, maxWait: max(0, a.MaxWait.Microseconds())}
}

// Refund returns the permits of requests that were taken at booked. It does not credit permits that
// have drained or belong to a window that is over.
func (m *Memory) Refund(_ context.Context, booked time.Time, asks ...Request) error {
	if err := Check(asks); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	for _, a := range asks {
		if s := m.entries[a.Key]; s != nil && s.params.family() == a.Params.family() {
			s.with(a.Params, now).engine.refund(now, booked.UnixMicro(), a.N)
		}
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

func (s *entry) copied() *entry {
	return &entry{params: s.params, engine: s.engine.clone(), fullAt: s.fullAt}
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
