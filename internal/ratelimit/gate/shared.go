package gate

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// takeShared decides by the cache of the key, else by Redis. While a call of the key is in flight,
// callers wait for it. The next call requests permits for all waiting callers.
func (g *Gate) takeShared(
	ctx context.Context, rule *rules.Compiled, req ratelimit.Request,
) (ratelimit.Decision, error) {
	waiting := false
	hit, inFlight := g.takeCached(rule, req, &waiting)
	if hit.ok {
		return hit.decision, nil
	}
	timer := time.NewTimer(g.opts.Deadline)
	defer timer.Stop()
	if inFlight == nil {
		return g.takeDirect(ctx, rule, req, timer.C)
	}
	defer func() {
		if waiting {
			g.keys.with(req.Key, g.opts.Now(), func(k *keyState) { k.waiting-- })
		}
	}()
	for !hit.ok {
		if err := g.await(ctx, req.Key, inFlight, timer.C); err != nil {
			return ratelimit.Decision{}, err
		}
		hit, inFlight = g.takeCached(rule, req, &waiting)
	}
	return hit.decision, nil
}

// await waits for a call in flight, until the deadline or the end of ctx.
func (g *Gate) await(
	ctx context.Context, key string, inFlight *call, deadline <-chan time.Time,
) error {
	select {
	case <-inFlight.done:
		return inFlight.err
	case <-deadline:
		g.batcher.breakers.of(key).record(g.opts.Now(), false)
		return context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeCached answers from the key's cache. Otherwise it returns the call to wait for, and starts
// one if there is none. For smooth_bursty it returns neither: each of its callers pays for the one
// before, so requests must not be merged.
func (g *Gate) takeCached(
	rule *rules.Compiled, req ratelimit.Request, waiting *bool,
) (hit cached, inFlight *call) {
	now := g.opts.Now()
	g.keys.with(req.Key, now, func(k *keyState) {
		k.setParams(req.Params)
		if hit = k.cached(now, req); hit.ok {
			g.answered(rule, k, hit, waiting)
			return
		}
		if req.Params.Kind == ratelimit.KindBursty {
			return
		}
		if !*waiting {
			*waiting, k.waiting = true, k.waiting+1
		}
		if k.call == nil {
			k.call = &call{done: make(chan struct{})}
			g.start(rule, req, k.callSize(now, leaseSize(rule.Leases, req.Params)), k.call)
		}
		inFlight = k.call
	})
	return hit, inFlight
}

// answered ends a caller's waiting at once, because callSize counts the waiting callers. It counts
// no event for a caller that waited, because Redis and not the cache decided.
func (g *Gate) answered(rule *rules.Compiled, k *keyState, hit cached, waiting *bool) {
	if *waiting {
		*waiting, k.waiting = false, k.waiting-1
		return
	}
	g.opts.Count(rule.Name, hit.event)
}

// start begins a call for size permits. Redis may grant any part of them.
func (g *Gate) start(rule *rules.Compiled, req ratelimit.Request, size int64, c *call) {
	req.N, req.Min = size, 1
	g.running.Go(func() {
		d, err := g.batcher.take(item{rule.Name, req})
		now, surplus := g.opts.Now(), int64(0)
		g.keys.with(req.Key, now, func(k *keyState) {
			if c.err = err; err == nil {
				surplus = k.update(now, req, d, leaseSize(rule.Leases, req.Params))
			}
			k.call = nil
		})
		close(c.done)
		if surplus > 0 {
			d.Granted = surplus
			g.refund(req, d)
		}
	})
}

type answer struct {
	d   ratelimit.Decision
	err error
}

// takeDirect makes a call for one caller alone. It refunds permits that arrive after the caller has
// stopped waiting.
func (g *Gate) takeDirect(
	ctx context.Context, rule *rules.Compiled, req ratelimit.Request, deadline <-chan time.Time,
) (ratelimit.Decision, error) {
	answers := make(chan answer) // unbuffered: an answer is received or refunded
	left := make(chan struct{})
	defer close(left)
	g.running.Go(func() {
		d, err := g.batcher.take(item{rule.Name, req})
		select {
		case answers <- answer{d, err}:
		case <-left:
			if d.Allowed {
				g.refund(req, d)
			}
		}
	})
	select {
	case got := <-answers:
		if got.err == nil && !got.d.Allowed {
			g.cacheDenial(rule, req, got.d)
		}
		return got.d, got.err
	case <-deadline:
		g.batcher.breakers.of(req.Key).record(g.opts.Now(), false)
		return ratelimit.Decision{}, context.DeadlineExceeded
	case <-ctx.Done():
		return ratelimit.Decision{}, ctx.Err()
	}
}

// cacheDenial stores a denial in the key's cache.
func (g *Gate) cacheDenial(rule *rules.Compiled, req ratelimit.Request, d ratelimit.Decision) {
	now := g.opts.Now()
	g.keys.with(req.Key, now, func(k *keyState) {
		k.setParams(req.Params)
		k.update(now, req, d, leaseSize(rule.Leases, req.Params))
	})
}

// refund returns permits to Redis, independent of the caller's context. It also ends the key's
// cached denial, so that the node calls Redis again at once.
func (g *Gate) refund(req ratelimit.Request, d ratelimit.Decision) {
	ctx, cancel := context.WithTimeout(context.Background(), g.opts.Deadline)
	defer cancel()
	req.N, req.Min = d.Granted, 0
	if g.shared.Refund(ctx, d.At, req) != nil {
		return // unused permits drain like used ones
	}
	g.keys.with(req.Key, g.opts.Now(), func(k *keyState) { k.until = time.Time{} })
}
