package ratelimit

// entry is the limiter of a request, or a new one that is not stored yet: a denial
// stores nothing.
func (m *Memory) entry(now int64, a Request) *entry {
	if s := m.entries[a.Key]; s != nil {
		return s.with(a.Params, now)
	}
	return &entry{params: a.Params, engine: newEngine(a.Params, now)}
}

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

// evict examines a few limiters for each new one and drops those that are full, so that
// memory follows the load without a background goroutine. (A map's iteration begins
// anywhere.)
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
