package ratelimit

// find gives the limiter of an ask, or a new one that is not kept yet: what is
// denied leaves nothing behind.
func (m *Memory) find(now int64, a Ask) *slot {
	if s := m.slots[a.Key]; s != nil {
		return s.with(a.Terms, now)
	}
	return &slot{terms: a.Terms, engine: newEngine(a.Terms, now)}
}

func (m *Memory) keep(now int64, key string, s *slot) {
	if _, known := m.slots[key]; !known {
		m.makeRoom(now)
	}
	m.slots[key] = s
}

// with changes the terms and keeps what was booked, unless the algorithm is
// another, whose state means nothing to this one: then it is a new limiter.
func (s *slot) with(t Terms, now int64) *slot {
	if s.terms == t {
		return s
	}
	if s.terms.family() != t.family() {
		return &slot{terms: t, engine: newEngine(t, now)}
	}
	s.engine.set(t, now)
	s.terms = t
	return s
}

// family tells which states can be read as one another's: all buckets' can.
func (t Terms) family() string {
	switch t.Kind {
	case KindBucket, KindBursty:
		return "bucket"
	}
	return string(t.limit.Algorithm)
}

func (s *slot) copied() *slot {
	return &slot{terms: s.terms, engine: s.engine.clone(), fullAt: s.fullAt}
}

// makeRoom looks at a few limiters for each new one and drops those that are
// full: so memory follows the load without a sweeper. (A map's range begins
// anywhere.)
func (m *Memory) makeRoom(now int64) {
	if len(m.slots) < 64 {
		return
	}
	looked := 0
	for key, s := range m.slots {
		if s.fullAt <= now || len(m.slots) >= memoryKeys {
			delete(m.slots, key)
		}
		if looked++; looked == 4 {
			return
		}
	}
}
