package gate

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// takeShared decides by what the node knows of the key, else by Redis. Callers
// that ask for one permit of one key travel together: while a trip is under way
// the others wait for it, and the next one asks for as many as wait.
func (g *Gate) takeShared(ctx context.Context, rule *rules.Compiled, a ratelimit.Request) (ratelimit.Decision, error) {
	waiting := false
	said, under := g.takeCached(rule, a, &waiting)
	if said.ok {
		return said.decision, nil
	}
	timer := time.NewTimer(g.opts.Deadline)
	defer timer.Stop()
	if under == nil {
		return g.takeDirect(ctx, rule, a, timer.C)
	}
	defer func() {
		if waiting {
			g.keys.with(a.Key, g.opts.Now(), func(k *keyState) { k.waiting-- })
		}
	}()
	for !said.ok {
		if err := g.await(ctx, a.Key, under, timer.C); err != nil {
			return ratelimit.Decision{}, err
		}
		said, under = g.takeCached(rule, a, &waiting)
	}
	return said.decision, nil
}

func (g *Gate) await(ctx context.Context, key string, under *call, deadline <-chan time.Time) error {
	select {
	case <-under.done:
		return under.err
	case <-deadline:
		g.batcher.breakers.of(key).record(g.opts.Now(), false)
		return context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// askKey gives what the node knows, or else the flight to wait for, which it
// starts if there is none. Neither means: ask alone.
func (g *Gate) takeCached(rule *rules.Compiled, a ratelimit.Request, waiting *bool) (said cached, under *call) {
	now := g.opts.Now()
	g.keys.with(a.Key, now, func(k *keyState) {
		k.setParams(a.Params)
		if said = k.cached(now, a); said.ok {
			g.answered(rule, k, said, waiting)
			return
		}
		if a.N > 1 || a.Params.Kind == ratelimit.KindBursty {
			return
		}
		if !*waiting {
			*waiting, k.waiting = true, k.waiting+1
		}
		if k.call == nil {
			k.call = &call{done: make(chan struct{})}
			g.start(rule, a, k.callSize(now, leaseSize(rule.Leases, a.Params)), k.call)
		}
		under = k.call
	})
	return said, under
}

// settle ends a caller's waiting with its answer, at once: the next trip asks
// for as many as wait. Who waited was answered by Redis, not by the node.
func (g *Gate) answered(rule *rules.Compiled, k *keyState, said cached, waiting *bool) {
	if *waiting {
		*waiting, k.waiting = false, k.waiting-1
		return
	}
	g.opts.count(rule.Name, said.event)
}

// fly asks for all who wait, and any part will do.
func (g *Gate) start(rule *rules.Compiled, a ratelimit.Request, want int64, f *call) {
	a.N, a.Min = want, 1
	g.running.Go(func() {
		d, err := g.batcher.take(item{rule.Name, a})
		now, surplus := g.opts.Now(), int64(0)
		g.keys.with(a.Key, now, func(k *keyState) {
			if f.err = err; err == nil {
				surplus = k.update(now, a, d, leaseSize(rule.Leases, a.Params))
			}
			k.call = nil
		})
		close(f.done)
		if surplus > 0 {
			d.Granted = surplus
			g.refund(a, d)
		}
	})
}

type answer struct {
	d   ratelimit.Decision
	err error
}

// direct asks for several permits at once, or for Guava's, which pay for one
// another. Who leaves before the answer gets nothing and owes nothing.
func (g *Gate) takeDirect(ctx context.Context, rule *rules.Compiled, a ratelimit.Request, deadline <-chan time.Time) (ratelimit.Decision, error) {
	answers := make(chan answer) // unbuffered: an answer is taken or given back
	gone := make(chan struct{})
	defer close(gone)
	g.running.Go(func() {
		d, err := g.batcher.take(item{rule.Name, a})
		select {
		case answers <- answer{d, err}:
		case <-gone:
			if d.Allowed {
				g.refund(a, d)
			}
		}
	})
	select {
	case got := <-answers:
		if got.err == nil && !got.d.Allowed {
			g.cacheDenial(rule, a, got.d)
		}
		return got.d, got.err
	case <-deadline:
		g.batcher.breakers.of(a.Key).record(g.opts.Now(), false)
		return ratelimit.Decision{}, context.DeadlineExceeded
	case <-ctx.Done():
		return ratelimit.Decision{}, ctx.Err()
	}
}

func (g *Gate) cacheDenial(rule *rules.Compiled, a ratelimit.Request, d ratelimit.Decision) {
	now := g.opts.Now()
	a.Min = a.N
	g.keys.with(a.Key, now, func(k *keyState) {
		k.setParams(a.Params)
		if !now.Before(k.until) { // never over one that holds for fewer permits
			k.update(now, a, d, leaseSize(rule.Leases, a.Params))
		}
	})
}

// giveBack refunds in Redis, whatever has become of the caller, and lets the
// node ask again at once.
func (g *Gate) refund(a ratelimit.Request, d ratelimit.Decision) {
	ctx, cancel := context.WithTimeout(context.Background(), g.opts.Deadline)
	defer cancel()
	a.N, a.Min = d.Granted, 0
	if g.shared.Refund(ctx, d.At, a) != nil {
		return // the permits drain by themselves
	}
	g.keys.with(a.Key, g.opts.Now(), func(k *keyState) { k.until = time.Time{} })
}
