package gate

import (
	"context"
	"runtime"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// takeShared decides by the cache of the key, else by Redis. While a call of the key is in flight,
// callers wait for it. The next call requests permits for all waiting callers.
func (g *Gate) takeShared(
	ctx context.Context, rule *rules.Compiled, req *ratelimit.Request, d *ratelimit.Decision,
) error {
	c := g.takeCached(rule, req, d, false)
	switch {
	case !c.room:
		return errManyKeys
	case c.hit:
		g.opts.Count(rule.Name, c.event)
		return nil
	}
	return g.takeCall(ctx, rule, *req, d, c.inFlight)
}

// takeCall waits for the key's call in flight, or makes one for this caller alone.
func (g *Gate) takeCall(
	ctx context.Context, rule *rules.Compiled, req ratelimit.Request, d *ratelimit.Decision,
	inFlight *call,
) (err error) {
	timer := time.NewTimer(g.opts.Deadline)
	defer timer.Stop()
	if inFlight == nil {
		*d, err = g.takeDirect(ctx, rule, req, timer.C)
		return err
	}
	for hit := false; !hit; {
		if err := await(ctx, inFlight, timer.C); err != nil {
			g.keys.update(req.Key, func(k *keyState) { k.waiting-- })
			return err
		}
		c := g.takeCached(rule, &req, d, true) // a key that is waited for has its place
		hit, inFlight = c.hit, c.inFlight
	}
	return nil
}

// await waits for a call in flight, until the deadline or the end of ctx. It records no failure for
// the circuit breaker, because the call's sender does: one failed call is one failure, for any
// number of callers.
func await(ctx context.Context, inFlight *call, deadline <-chan time.Time) error {
	select {
	case <-inFlight.done:
		return inFlight.err
	case <-deadline:
		return context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cached is how the cache of a key has decided a request.
type cached struct {
	inFlight  *call // to wait for
	event     Event // of a hit
	hit, room bool
}

// takeCached answers from the key's cache. Otherwise it returns the call to wait for, and starts
// one if there is none. It returns neither in three cases, for which the caller makes a call alone:
//
//   - smooth_bursty: each of its callers pays for the one before, so requests must not be merged
//   - several permits: the cache has leases and denials of one
//   - a limit other than that of the callers that wait for the key
//
// A caller stops waiting as soon as it has an answer, because callSize counts the waiting callers.
// Without room for a new key takeCached does nothing.
func (g *Gate) takeCached(
	rule *rules.Compiled, req *ratelimit.Request, d *ratelimit.Decision, waiting bool,
) (c cached) {
	c.room = g.keys.with(req.Key, g.opts.Now(), func(k *keyState) {
		if req.N > 1 || !k.setParams(&req.Params) {
			return
		}
		now := g.opts.Now() // not before the permits that another caller has just brought
		if c.event, c.hit = k.cached(now, req, d); c.hit {
			if waiting {
				k.waiting--
			}
			return
		}
		if req.Params.Kind == ratelimit.KindBursty {
			return
		}
		if !waiting {
			k.waiting++
		}
		if k.call == nil {
			k.call = &call{done: make(chan struct{})}
			g.start(rule, *req, k.call)
		}
		c.inFlight = k.call
	})
	return c
}

// start begins a call for all waiting callers, also those that are ready to run but have not run
// yet. Redis may grant any part of the permits.
func (g *Gate) start(rule *rules.Compiled, req ratelimit.Request, c *call) {
	lease := g.leaseSize(rule, req.Params)
	g.running.Go(func() {
		runtime.Gosched()
		g.keys.update(req.Key, func(k *keyState) {
			req.N, req.Min = k.callSize(g.opts.Now(), lease), 1
		})
		d, err := g.batcher.take(item{rule.Name, req})
		now, surplus := g.opts.Now(), int64(0)
		g.keys.update(req.Key, func(k *keyState) {
			if c.err = err; err == nil {
				surplus = k.update(now, req, d, lease)
			}
			k.call = nil
		})
		close(c.done)
		if surplus > 0 {
			d.Granted = surplus
			g.refundUnused(req, d)
		}
	})
}

// nodes is how many nodes share Redis. It is 1 as long as Options.Nodes does not know.
func (g *Gate) nodes() int64 { return max(1, int64(g.opts.Nodes())) }

// leaseSize is how many permits a node may hold for a key. It is the rule's leases or, of a fast
// limit, the permits of 1 ms, with which all nodes together hold a burst at most. A lease is never
// more than a burst or the permits of 100 ms. Only buckets lease.
func (g *Gate) leaseSize(rule *rules.Compiled, p ratelimit.Params) int64 {
	if rule.Leases < 2 || p.Kind != ratelimit.KindBucket {
		return 1
	}
	burst := p.Free / p.Cost
	leases := max(rule.Leases, min(p.PermitsIn(time.Millisecond), burst/g.nodes()))
	return max(1, min(leases, p.PermitsIn(100*time.Millisecond), burst))
}

// takeDirect makes a call for one caller alone, and caches a denial of one permit. It refunds
// permits that arrive after the caller has stopped waiting.
func (g *Gate) takeDirect(
	ctx context.Context, rule *rules.Compiled, req ratelimit.Request, deadline <-chan time.Time,
) (ratelimit.Decision, error) {
	var d ratelimit.Decision
	c := &call{done: make(chan struct{})}
	g.running.Go(func() {
		defer close(c.done)
		if c.err = g.payDebt(rule, req); c.err == nil {
			d, c.err = g.batcher.take(item{rule.Name, req})
		}
	})
	if err := await(ctx, c, deadline); err != nil {
		g.running.Go(func() {
			if <-c.done; d.Allowed {
				g.refundUnused(req, d)
			}
		})
		return ratelimit.Decision{}, err
	}
	now := g.opts.Now()
	g.keys.with(req.Key, now, func(k *keyState) {
		switch {
		case d.Allowed:
			k.goneAt, k.answeredAt = now.Add(d.ResetAfter+req.Params.IdleLifetime()), now
		case req.N == 1 && k.setParams(&req.Params):
			k.update(now, req, d, g.leaseSize(rule, req.Params))
		}
	})
	return d, nil
}

// payDebt takes the permits of a key's debt. A call for several callers asks for them itself.
func (g *Gate) payDebt(rule *rules.Compiled, req ratelimit.Request) error {
	due := int64(0)
	g.keys.update(req.Key, func(k *keyState) {
		due = min(k.due(g.opts.Now()), maxPermits)
		k.paying += due // no other call pays it meanwhile
	})
	if due == 0 {
		return nil
	}
	req.N, req.Min = due, 1
	d, err := g.batcher.take(item{rule.Name, req})
	g.keys.update(req.Key, func(k *keyState) {
		k.paying, k.owed = k.paying-due, max(0, k.owed-d.Granted)
		if err == nil {
			k.answeredAt = g.opts.Now()
		}
	})
	return err
}

// refundUnused returns to Redis what a decision granted to nobody, or to a caller that has left.
func (g *Gate) refundUnused(req ratelimit.Request, d ratelimit.Decision) {
	req.N, req.Min = d.Granted, 0
	_ = g.refund(context.Background(), g.shared, req, d) // unused permits drain like used ones
}

// refund returns req.N permits to a store within Options.Deadline. It also ends the key's cached
// denial, so that the node calls Redis again at once.
func (g *Gate) refund(
	ctx context.Context, store Store, req ratelimit.Request, taken ratelimit.Decision,
) error {
	ctx, cancel := context.WithTimeout(ctx, g.opts.Deadline)
	defer cancel()
	if err := store.Refund(ctx, taken, req); err != nil {
		return err
	}
	g.keys.update(req.Key, func(k *keyState) { k.until = time.Time{} })
	return nil
}
