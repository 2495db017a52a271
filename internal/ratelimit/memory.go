package ratelimit

import (
	"context"
	"sync"
	"time"
)

// memoryKeys bounds a Memory: some 200 bytes each.
const memoryKeys = 500_000

// Memory keeps limiters by key in this process, of every algorithm. One that
// is full again is dropped, as Redis drops it by its TTL; beyond half a million
// that are not, some are forgotten early. Safe for many goroutines.
type Memory struct {
	now func() time.Time

	mu    sync.Mutex
	slots map[string]*slot
}

type slot struct {
	terms  Terms
	engine engine
	fullAt int64 // µs; from then on it is no different from a new one
}

// NewMemory makes an empty store on the clock now; nil is this process' own.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = steadyClock()
	}
	return &Memory{now: now, slots: map[string]*slot{}}
}

// TakeEach is Store's; it never fails but for a malformed ask.
func (m *Memory) TakeEach(_ context.Context, groups ...[]Ask) ([]Decision, error) {
	for _, group := range groups {
		if err := CheckGroup(group); err != nil {
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

func (m *Memory) takeGroup(now int64, group []Ask) Decision {
	var d Decision
	if len(group) == 1 {
		s := m.find(now, group[0])
		if d = s.decide(now, group[0]); d.Allowed {
			m.keep(now, group[0].Key, s)
		}
	} else {
		d = m.takeTogether(now, group)
	}
	d.At = unixMicros(now)
	return d
}

// takeTogether tries the asks on copies, which become the state if all agree.
func (m *Memory) takeTogether(now int64, group []Ask) Decision {
	tried := make(map[string]*slot, len(group))
	var joined Decision
	for i, a := range group {
		s := tried[a.Key]
		if s == nil {
			known := m.find(now, a)
			known.engine.described(now) // re-anchors on another clock, whatever is decided
			s = known.copied()
		}
		s = s.with(a.Terms, now)
		tried[a.Key] = s
		d := s.decide(now, a)
		if i > 0 {
			d = Strictest(joined, d)
		}
		joined = d
	}
	if joined.Allowed {
		for key, s := range tried {
			m.keep(now, key, s)
		}
	}
	return joined
}

func (s *slot) decide(now int64, a Ask) Decision {
	d := s.engine.decide(now, a.ask())
	s.fullAt = max(s.fullAt, now+d.ResetAfter.Microseconds()+s.terms.kept())
	return d
}

// kept is how long a limiter that is full is kept, because a new one is not.
func (t Terms) kept() int64 {
	if t.Kind == KindBursty || t.limit.Algorithm == SmoothWarmingUp {
		return maxInterval.Microseconds()
	}
	return 0
}

func (a Ask) ask() ask {
	least := a.Least
	if least == 0 {
		least = a.N
	}
	return ask{n: a.N, least: least, maxWait: max(0, a.MaxWait.Microseconds())}
}

// Len is how many limiters are kept.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.slots)
}

// Peek is Store's.
func (m *Memory) Peek(_ context.Context, asks ...Ask) (Decision, error) {
	if err := CheckGroup(asks); err != nil {
		return Decision{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	var joined Decision
	for i, a := range asks {
		d := m.peek(now, a)
		if i > 0 {
			d = Strictest(joined, d)
		}
		joined = d
	}
	joined.At = unixMicros(now)
	return joined, nil
}

func (m *Memory) peek(now int64, a Ask) Decision {
	s := m.find(now, a).copied()
	before := s.engine.described(now)
	d := s.engine.decide(now, a.ask())
	d.Remaining, d.ResetAfter = before.Remaining, before.ResetAfter
	return d
}

// Refund is Store's.
func (m *Memory) Refund(_ context.Context, booked time.Time, asks ...Ask) error {
	if err := CheckGroup(asks); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	for _, a := range asks {
		if s := m.slots[a.Key]; s != nil && s.terms.family() == a.Terms.family() {
			s.with(a.Terms, now).engine.refund(now, booked.UnixMicro(), a.N)
		}
	}
	return nil
}

// Forget is Store's.
func (m *Memory) Forget(_ context.Context, keys ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.slots, key)
	}
	return nil
}
