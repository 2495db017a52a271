package app

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Health tells whether a node should get requests: it is not draining, and Redis answers and will not throw keys away.
// How the others are is told beside it and decides nothing: one broker's outage must not take every node out.
type Health struct {
	parts    Parts
	draining atomic.Bool
}

// NewHealth makes the health of a node over its parts.
func NewHealth(p Parts) *Health { return &Health{parts: p} }

// Drain makes the node not ready for the rest of its life.
func (h *Health) Drain() { h.draining.Store(true) }

// pingDeadline is how long a part may take to answer.
const pingDeadline = time.Second

// Ready asks every part and tells how each is: "ok", or what is wrong.
func (h *Health) Ready(ctx context.Context) (bool, map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, pingDeadline)
	defer cancel()
	var g errgroup.Group
	var redisState, mysqlState string
	g.Go(func() error { redisState = state(h.parts.Shelf.Fit(ctx)); return nil })
	g.Go(func() error { mysqlState = state(h.parts.Store.Ping(ctx)); return nil })
	_ = g.Wait() // neither returns an error
	queue := h.parts.Queue.Trouble()
	if queue == "" {
		queue = "ok"
	}
	told := map[string]string{"redis": redisState, "mysql": mysqlState, "rabbitmq": queue}
	if h.draining.Load() {
		told["node"] = "draining"
	}
	return redisState == "ok" && !h.draining.Load(), told
}

// state hides what an error says of addresses and users: the log has it.
func state(err error) string {
	if err != nil {
		return "down"
	}
	return "ok"
}
