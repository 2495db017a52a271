package ratelimit

import (
	"context"
	"time"
)

// Len is how many limiters are kept.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// Peek decides like TakeEach for one group and takes nothing. The programs peek in Redis
// alone; the tests compare that with this.
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
