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
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// Peek decides as TakeEach does, but takes no permit. The programs peek only in Redis. The tests
// compare both stores.
func (m *Memory) Peek(_ context.Context, r Request) (Decision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	e := copyOf(m.entry(now, r).engine)
	before := e.decide(now, Request{N: math.MaxInt64}) // a denial takes nothing and shows the state
	d := e.decide(now, r)
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
