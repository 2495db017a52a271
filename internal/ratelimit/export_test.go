package ratelimit

import (
	"context"
	"math"
	"reflect"
	"slices"
)

// Len returns the number of limiters in the store.
func (m *Memory) Len() int {
	n := 0
	for i := range m.shards {
		m.shards[i].mu.Lock()
		n += len(m.shards[i].entries)
		m.shards[i].mu.Unlock()
	}
	return n
}

// Peek decides as TakeEach does, but takes no permit. The programs peek only in Redis. The tests
// compare both stores.
func (m *Memory) Peek(_ context.Context, r Request) (d Decision, err error) {
	hash := m.hash(&r)
	shard := &m.shards[hash%memoryShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := m.now()
	e := copyOf(shard.entry(hash, now, &r))
	var before, a answer
	// a denial takes nothing and shows the state
	e.decide(now, ask{n: math.MaxInt64, least: math.MaxInt64}, &before)
	e.decide(now, r.ask(), &a)
	a.remaining, a.reset = before.remaining, before.reset
	a.write(&d, now)
	return d, nil
}

func copyOf(e *entry) *entry {
	c := *e
	if left := e.bucket.trace; left != nil {
		own := *left
		c.bucket.trace = &own
	}
	if e.other == nil {
		return &c
	}
	other := reflect.New(reflect.TypeOf(e.other).Elem())
	other.Elem().Set(reflect.ValueOf(e.other).Elem())
	if log, ok := other.Interface().(*logEngine); ok {
		log.entries = slices.Clone(log.entries)
	}
	c.other = other.Interface().(engine)
	return &c
}

// TakeOne is Take with its decision as a result.
func (m *Memory) TakeOne(r *Request) (d Decision, err error) {
	err = m.Take(r, &d)
	return d, err
}

// Validate reports the first invalid field.
func (l Limit) Validate() error {
	_, err := l.Params()
	return err
}

// SetMost replaces the bound of the store in bytes.
func (m *Memory) SetMost(bytes int64) { m.most = bytes }

// Bytes returns the size of the store as it counts it.
func (m *Memory) Bytes() int64 { return m.bytes.Load() }
