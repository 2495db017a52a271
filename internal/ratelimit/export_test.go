package ratelimit

import (
	"context"
	"time"
)

// Len returns the number of limiters in the store.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// Peek decides as TakeEach does for one group, but takes no permit. The programs peek only in
// Redis. The tests compare both stores.
func (m *Memory) Peek(_ context.Context, requests ...Request) (Decision, error) {
	if err := Check(requests); err != nil {
		return Decision{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	var joined Decision
	for i, a := range requests {
		s := m.entry(now, a).copied()
		before := s.engine.status(now)
		d := s.engine.decide(now, a.toLimiter())
		d.Remaining, d.ResetAfter = before.Remaining, before.ResetAfter
		if i > 0 {
			d = Strictest(joined, d)
		}
		joined = d
	}
	joined.At = time.UnixMicro(now).UTC()
	return joined, nil
}

// Validate reports the first invalid field.
func (l Limit) Validate() error {
	_, err := l.Params()
	return err
}
