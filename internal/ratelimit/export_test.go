package ratelimit

import (
	"context"
	"math"
	"reflect"
	"slices"
	"time"
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
func (m *Memory) Peek(_ context.Context, r Request) (Decision, error) {
	shard := m.shard(r.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	now := m.now()
	e := copyOf(shard.entry(now, &r).engine)
	before := e.decide(now, ask{n: math.MaxInt64, least: math.MaxInt64}) // a denial takes nothing and shows the state
	d := e.decide(now, r.ask())
	d.Remaining, d.ResetAfter = before.Remaining, before.ResetAfter
	d.At = time.UnixMicro(now).UTC()
	return d, nil
}

func copyOf(e engine) engine {
	c := reflect.New(reflect.TypeOf(e).Elem())
	c.Elem().Set(reflect.ValueOf(e).Elem())
	if log, ok := c.Interface().(*logEngine); ok {
		log.entries = slices.Clone(log.entries)
	}
	return c.Interface().(engine)
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
