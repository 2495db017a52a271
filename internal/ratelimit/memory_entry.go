package ratelimit

// find gives the limiter of an ask, or a new one that is not kept yet: what is
// denied leaves nothing behind.
func (m *Memory) entry(now int64, a Request) *entry {
	if s := m.entries[a.Key]; s != nil {
		return s.with(a.Params, now)
	}
	return &entry{terms: a.Params, engine: newEngine(a.Params, now)}
}

func (m *Memory) put(now int64, key string, s *entry) {
	if _, known := m.entries[key]; !known {
		m.evict(now)
	}
	m.entries[key] = s
}

// with changes the terms and keeps what was booked, unless the algorithm is
// another, whose state means nothing to this one: then it is a new limiter.
func (s *entry) with(t Params, now int64) *entry {
	if s.terms == t {
		return s
	}
	if s.terms.family() != t.family() {
		return &entry{terms: t, engine: newEngine(t, now)}
	}
	s.engine.set(t, now)
	s.terms = t
	return s
}

// family tells which states can be read as one another's: all buckets' can.
func (t Params) family() string {
	switch t.Kind {
	case KindBucket, KindBursty:
		return "bucket"
	}
	return string(t.limit.Algorithm)
}

func (s *entry) copied() *entry {
	return &entry{terms: s.terms, engine: s.engine.clone(), fullAt: s.fullAt}
}

// makeRoom looks at a few limiters for each new one and drops those that are
// full: so memory follows the load without a sweeper. (A map's range begins
// anywhere.)
func (m *Memory) evict(now int64) {
	if len(m.entries) < 64 {
		return
	}
	looked := 0
	for key, s := range m.entries {
		if s.fullAt <= now || len(m.entries) >= memoryKeys {
			delete(m.entries, key)
		}
		if looked++; looked == 4 {
			return
		}
	}
}
