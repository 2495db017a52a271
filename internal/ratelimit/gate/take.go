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
func (g *Gate) takeShared(ctx context.Context, rule *rules.Compiled, a ratelimit.Ask) (ratelimit.Decision, error) {
	waiting := false
	said, under := g.askKey(rule, a, &waiting)
	if said.ok {
		return said.decision, nil
	}
	timer := time.NewTimer(g.opts.Deadline)
	defer timer.Stop()
	if under == nil {
		return g.direct(ctx, rule, a, timer.C)
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
		said, under = g.askKey(rule, a, &waiting)
	}
	return said.decision, nil
}

func (g *Gate) await(ctx context.Context, key string, under *flight, deadline <-chan time.Time) error {
	select {
	case <-under.done:
		return under.err
	case <-deadline:
		g.courier.breakers.of(key).record(g.opts.Now(), false)
		return context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// askKey gives what the node knows, or else the flight to wait for, which it
// starts if there is none. Neither means: ask alone.
func (g *Gate) askKey(rule *rules.Compiled, a ratelimit.Ask, waiting *bool) (said known, under *flight) {
	now := g.opts.Now()
	g.keys.with(a.Key, now, func(k *keyState) {
		k.use(a.Terms)
		if said = k.answer(now, a); said.ok {
			g.settle(rule, k, said, waiting)
			return
		}
		if a.N > 1 || a.Terms.Kind == ratelimit.KindBursty {
			return
		}
		if !*waiting {
			*waiting, k.waiting = true, k.waiting+1
		}
		if k.flight == nil {
			k.flight = &flight{done: make(chan struct{})}
			g.fly(rule, a, k.want(now, leaseSize(rule.Leases, a.Terms)), k.flight)
		}
		under = k.flight
	})
	return said, under
}

// settle ends a caller's waiting with its answer, at once: the next trip asks
// for as many as wait. Who waited was answered by Redis, not by the node.
func (g *Gate) settle(rule *rules.Compiled, k *keyState, said known, waiting *bool) {
	if *waiting {
		*waiting, k.waiting = false, k.waiting-1
		return
	}
	g.opts.Metrics.Count(rule.Name, said.event)
}

// fly asks for all who wait, and any part will do.
func (g *Gate) fly(rule *rules.Compiled, a ratelimit.Ask, want int64, f *flight) {
	a.N, a.Least = want, 1
	g.running.Go(func() {
		d, err := g.courier.ask(request{rule.Name, a})
		now, surplus := g.opts.Now(), int64(0)
		g.keys.with(a.Key, now, func(k *keyState) {
			if f.err = err; err == nil {
				surplus = k.learn(now, a, d, leaseSize(rule.Leases, a.Terms))
			}
			k.flight = nil
		})
		close(f.done)
		if surplus > 0 {
			d.Granted = surplus
			g.giveBack(a, d)
		}
	})
}

type answer struct {
	d   ratelimit.Decision
	err error
}

// direct asks for several permits at once, or for Guava's, which pay for one
// another. Who leaves before the answer gets nothing and owes nothing.
func (g *Gate) direct(ctx context.Context, rule *rules.Compiled, a ratelimit.Ask, deadline <-chan time.Time) (ratelimit.Decision, error) {
	answers := make(chan answer) // unbuffered: an answer is taken or given back
	gone := make(chan struct{})
	defer close(gone)
	g.running.Go(func() {
		d, err := g.courier.ask(request{rule.Name, a})
		select {
		case answers <- answer{d, err}:
		case <-gone:
			if d.Allowed {
				g.giveBack(a, d)
			}
		}
	})
	select {
	case got := <-answers:
		if got.err == nil && !got.d.Allowed {
			g.remember(rule, a, got.d)
		}
		return got.d, got.err
	case <-deadline:
		g.courier.breakers.of(a.Key).record(g.opts.Now(), false)
		return ratelimit.Decision{}, context.DeadlineExceeded
	case <-ctx.Done():
		return ratelimit.Decision{}, ctx.Err()
	}
}

func (g *Gate) remember(rule *rules.Compiled, a ratelimit.Ask, d ratelimit.Decision) {
	now := g.opts.Now()
	a.Least = a.N
	g.keys.with(a.Key, now, func(k *keyState) {
		k.use(a.Terms)
		if !now.Before(k.until) { // never over one that holds for fewer permits
			k.learn(now, a, d, leaseSize(rule.Leases, a.Terms))
		}
	})
}

// giveBack refunds in Redis, whatever has become of the caller, and lets the
// node ask again at once.
func (g *Gate) giveBack(a ratelimit.Ask, d ratelimit.Decision) {
	ctx, cancel := context.WithTimeout(context.Background(), g.opts.Deadline)
	defer cancel()
	a.N, a.Least = d.Granted, 0
	if g.shared.Refund(ctx, d.At, a) != nil {
		return // the permits drain by themselves
	}
	g.keys.with(a.Key, g.opts.Now(), func(k *keyState) { k.until = time.Time{} })
}
