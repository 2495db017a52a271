package loadgen

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Run plays the plan to its end, or until ctx ends: then nobody comes any more, and who is on the way ends at the next
// call. What had been told by then is in the result all the same.
func Run(ctx context.Context, p Plan) Result {
	p = p.withDefaults()
	r := &runner{Plan: p, began: time.Now(), rec: newRecorder(), loot: &buyer.Loot{}}
	if p.StartAt.After(r.began) {
		r.began = p.StartAt
	}
	r.rec.began = r.began
	ticking, stop := context.WithCancel(context.WithoutCancel(ctx))
	var clock sync.WaitGroup
	clock.Go(func() { r.rec.tick(ticking, p.Every, p.Watch) })
	r.play(ctx)
	took := time.Since(r.began)
	stop()
	clock.Wait()
	return r.rec.result(r.began, took, p.Buyers)
}

// runner is one run.
type runner struct {
	Plan
	began time.Time
	rec   *recorder
	loot  *buyer.Loot
	gone  sync.WaitGroup
}

// play sends the buyers on their way and waits for the last.
func (r *runner) play(ctx context.Context) {
	defer r.gone.Wait()
	if !until(ctx, r.began) {
		return
	}
	for i := range r.Spike {
		r.gone.Go(func() { r.one(ctx, i, r.began) })
	}
	if r.Rate > 0 {
		r.open(ctx)
	} else {
		r.closed(ctx)
	}
}

// open lets buyers come at their times, whatever becomes of those before.
func (r *runner) open(ctx context.Context) {
	places := make(chan struct{}, r.InFlight)
	for n := range r.Buyers - r.Spike {
		due := r.began.Add(arrival(n, r.Rate, r.Ramp))
		if !until(ctx, due) {
			return
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		r.gone.Go(func() {
			defer func() { <-places }()
			r.one(ctx, r.Spike+n, due)
		})
	}
}

// closed keeps so many buyers on their way: each place is taken anew as soon as its buyer is done.
func (r *runner) closed(ctx context.Context) {
	var next atomic.Int64
	next.Store(int64(r.Spike))
	for u := range r.Users {
		r.gone.Go(func() {
			if !until(ctx, r.began.Add(place(u, r.Users, r.Ramp))) {
				return
			}
			for i := next.Add(1) - 1; i < int64(r.Buyers) && ctx.Err() == nil; i = next.Add(1) - 1 {
				r.one(ctx, int(i), time.Now())
			}
		})
	}
}

// until waits for a moment; false where ctx ended first.
func until(ctx context.Context, t time.Time) bool {
	wait := time.Until(t)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
