package app

import (
	"context"
	"fmt"
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

// pingDeadline is how long Redis may take to answer; othersDeadline how long the answer waits for the rest, which decide
// nothing: a MySQL that hangs must not make a probe with a second's patience take the node out.
const (
	pingDeadline   = 800 * time.Millisecond
	othersDeadline = 300 * time.Millisecond
)

// Ready asks every part and tells how each is: "ok", or what is wrong.
func (h *Health) Ready(ctx context.Context) (bool, map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, pingDeadline)
	defer cancel()
	var g errgroup.Group
	var redisState, mysqlState string
	var fit bool
	g.Go(func() error { redisState, fit = h.redis(ctx); return nil })
	g.Go(func() error {
		ctx, cancel := context.WithTimeout(ctx, othersDeadline)
		defer cancel()
		mysqlState = state(h.parts.Store.Ping(ctx))
		return nil
	})
	_ = g.Wait() // neither returns an error
	queue := h.parts.Queue.DownReason()
	if queue == "" {
		queue = "ok"
	}
	told := map[string]string{"redis": redisState, "mysql": mysqlState, "rabbitmq": queue}
	if h.draining.Load() {
		told["node"] = "draining"
	}
	return fit && !h.draining.Load(), told
}

// redis tells how Redis is. Of a cluster one master is enough: the sales of those that are away wait, and all nodes alike could not
// sell them.
func (h *Health) redis(ctx context.Context) (told string, fit bool) {
	f, err := h.parts.Shelf.Fit(ctx)
	if err == nil && f.Away > 0 {
		return fmt.Sprintf("%d of %d masters away", f.Away, f.Masters), true
	}
	return state(err), err == nil
}

// state hides what an error says of addresses and users: the log has it.
func state(err error) string {
	if err != nil {
		return "down"
	}
	return "ok"
}
