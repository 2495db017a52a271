package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/redisstore"
)

// Health reports whether a node should get requests: it is not draining, and Redis replies and
// evicts no keys. It also reports the state of MySQL and RabbitMQ. That state does not count,
// because the outage of a broker must not remove all nodes from their load balancer.
//
// It logs without the probe's context. The logger writes only one of equal records within some
// seconds, and the context's request id would make every record different.
type Health struct {
	parts    Parts
	draining atomic.Bool

	mu        sync.Mutex
	checkedAt time.Time
	fit       bool              // of the last check, as of Redis
	states    map[string]string // of the last check
}

// NewHealth makes the health of a node.
func NewHealth(p Parts) *Health { return &Health{parts: p} }

// Drain makes the node not ready until its process ends.
func (h *Health) Drain() { h.draining.Store(true) }

// pingDeadline bounds Redis' reply, because probes often time out after one second. othersDeadline
// bounds the wait for MySQL: one that hangs must not make the node fail its probes.
const (
	pingDeadline   = 800 * time.Millisecond
	othersDeadline = 300 * time.Millisecond
	// checkEvery is the shortest time between two checks. Anybody may call /readyz, as often as a
	// network permits, and one check is several statements of MySQL.
	checkEvery = 200 * time.Millisecond
)

// Ready returns "ok" or the problem of every server, as they were at most checkEvery ago. The node
// is ready if Redis is fit and the node is not draining.
func (h *Health) Ready(ctx context.Context) (bool, map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checkedAt) >= checkEvery {
		h.check(context.WithoutCancel(ctx)) // others use the result of a caller that leaves
		h.checkedAt = time.Now()
	}
	states := maps.Clone(h.states)
	states["rabbitmq"] = cmp.Or(cause.Of(h.parts.Queue.DownReason()), "ok")
	if h.draining.Load() {
		states["node"] = "draining"
	}
	return h.fit && !h.draining.Load(), states
}

// check asks Redis and MySQL.
func (h *Health) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingDeadline)
	defer cancel()
	var mysqlState, redisState string
	var asked sync.WaitGroup
	asked.Go(func() { redisState, h.fit = h.redis(ctx) })
	asked.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, othersDeadline)
		defer cancel()
		mysqlState = h.stateOf("mysql", h.parts.Store.CheckReadiness(ctx))
	})
	asked.Wait()
	h.states = map[string]string{"redis": redisState, "mysql": mysqlState}
}

// redis returns the state of Redis. One reachable master of a cluster makes the node fit: taking it
// out would not bring back the sales of the other masters. A Redis that takes no writes leaves it
// fit as well, because no other node could sell, and orders and sales are read.
func (h *Health) redis(ctx context.Context) (state string, fit bool) {
	f, err := h.parts.RedisStore.CheckReadiness(ctx)
	switch {
	case err == nil && f.Unavailable > 0:
		return fmt.Sprintf("%d of %d masters away", f.Unavailable, f.Masters), true
	case f.NoWrites != nil:
		return h.stateOf("redis", f.NoWrites), true
	}
	unfit, ok := errors.AsType[*redisstore.UnfitError](err)
	if !ok {
		return h.stateOf("redis", err), err == nil
	}
	h.parts.Log.Error("the node is not ready", "err", unfit)
	return unfit.Problem, false
}

// stateOf returns the cause of an error without addresses and users, which errors contain. It logs
// an error without a cause of its own; the publisher logs RabbitMQ's.
func (h *Health) stateOf(server string, err error) string {
	state := cause.Of(err)
	if state == cause.Other {
		h.parts.Log.Warn("a server is not usable", "server", server, "err", err)
	}
	return cmp.Or(state, "ok")
}
