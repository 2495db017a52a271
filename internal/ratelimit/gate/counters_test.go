package gate_test

import (
	"sync/atomic"

	"flashsale.dev/seckill/internal/ratelimit/gate"
)

// counters sum events over all rules.
type counters struct {
	n [gate.EventRedisCall + 1]atomic.Int64
}

var _ gate.Metrics = (*counters)(nil)

func (c *counters) Count(_ string, event gate.Event) { c.n[event].Add(1) }

func (c *counters) of(event gate.Event) int64 { return c.n[event].Load() }
