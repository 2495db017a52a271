package loadgen

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Run runs the plan to its end or until ctx ends. Then no buyer starts, and active buyers stop at
// their current call. The result contains everything recorded until then.
func Run(ctx context.Context, p Plan) Result {
	p = p.withDefaults()
	r := &runner{
		Plan: p, began: time.Now(), captured: &buyer.Captured{},
		monitor: buyer.NewMonitor(),
	}
	if p.StartAt.After(r.began) {
		r.began = p.StartAt
	}
	r.recorder = newRecorder(r.began)
	done := make(chan struct{})
	var clock sync.WaitGroup
	clock.Go(func() { r.recorder.tick(done, p.Every, p.OnPoint) })
	monitoring, stop := context.WithCancel(ctx)
	if p.Room != nil {
		clock.Go(func() {
			r.monitor.Run(monitoring, apiclient.Client{Base: p.Bases[0], HTTP: p.HTTP}, p.GoodsID)
		})
	}
	r.play(ctx)
	stop()
	took := time.Since(r.began)
	close(done)
	clock.Wait()
	result := r.recorder.result(r.began, took, p.Buyers)
	result.Commitment = r.monitor.Commitment()
	return result
}

// runner is the state of one run.
type runner struct {
	Plan
	began    time.Time
	recorder *recorder
	captured *buyer.Captured
	monitor  *buyer.Monitor
	buyers   sync.WaitGroup
}

// play starts the buyers and waits for the last.
func (r *runner) play(ctx context.Context) {
	defer r.buyers.Wait()
	if !waitUntil(ctx, r.began) {
		return
	}
	for i := range r.Spike {
		r.buyers.Go(func() { r.playBuyer(ctx, i, r.began) })
	}
	if r.Rate > 0 {
		r.openLoop(ctx)
	} else {
		r.closedLoop(ctx)
	}
}

// openLoop starts each buyer at its planned arrival, whether or not earlier buyers have finished.
// Real buyers behave like this: a slow server does not delay their arrival.
func (r *runner) openLoop(ctx context.Context) {
	places := make(chan struct{}, r.InFlight)
	for n := range r.Buyers - r.Spike {
		due := r.began.Add(arrival(n, r.Rate, r.Ramp))
		if !waitUntil(ctx, due) {
			return
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		r.buyers.Go(func() {
			defer func() { <-places }()
			r.playBuyer(ctx, r.Spike+n, due)
		})
	}
}

// closedLoop keeps Users buyers active: each user runs the next buyer when one finishes. It finds
// the highest rate, because the load adapts to the server.
func (r *runner) closedLoop(ctx context.Context) {
	var next atomic.Int64
	next.Store(int64(r.Spike))
	for u := range r.Users {
		r.buyers.Go(func() {
			if !waitUntil(ctx, r.began.Add(userStart(u, r.Users, r.Ramp))) {
				return
			}
			for i := next.Add(1) - 1; i < int64(r.Buyers) && ctx.Err() == nil; i = next.Add(1) - 1 {
				r.playBuyer(ctx, int(i), time.Now())
			}
		})
	}
}

// waitUntil waits for a point in time. It reports false if ctx ended first.
func waitUntil(ctx context.Context, t time.Time) bool {
	return apiclient.Sleep(ctx, time.Until(t)) == nil
}

// arrival is the planned start of buyer n (from 0) of an open loop, counted from the loop's start.
// After a ramp with linear growth one buyer starts every 1/rate. During the ramp rate·t²/(2·ramp)
// buyers have arrived by t.
func arrival(n int, rate float64, ramp time.Duration) time.Duration {
	inRamp := rate * ramp.Seconds() / 2
	k := float64(n)
	if k < inRamp {
		return seconds(math.Sqrt(2 * ramp.Seconds() * k / rate))
	}
	return ramp + seconds((k-inRamp)/rate)
}

// userStart is the start of user n of a closed loop, spread evenly over the ramp.
func userStart(n, users int, ramp time.Duration) time.Duration {
	return time.Duration(float64(ramp) * float64(n) / float64(users))
}

// seconds converts s to a duration. It returns at most a fourth of the longest duration, so that
// sums do not overflow at very low rates.
func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/4))
}

// Kind is a buyer's behaviour.
type Kind string

// The kinds of buyers.
const (
	Polite Kind = "polite" // obeys every answer and every Retry-After
	// Impatient buyers send three purchases at once, wait at most 100 ms, and buy a second time.
	Impatient Kind = "impatient"
	Hostile   Kind = "hostile" // replays paths of others, invents paths and order numbers
)

// habit selects what buyer i does in a line; the same seed selects the same habits.
func (p Plan) habit(i int) buyer.Habit {
	draw := uniform(p.Seed+1, i)
	for _, h := range []struct {
		buyer.Habit
		share float64
	}{
		{buyer.Eager, p.Room.Eager},
		{buyer.Leaver, p.Room.Leavers},
		{buyer.Sleeper, p.Room.Sleepers},
		{buyer.Unpaid, p.Room.Unpaid},
	} {
		if draw < h.share {
			return h.Habit
		}
		draw -= h.share
	}
	return buyer.Prompt
}

// uniform returns a random number in [0, 1), always the same for a seed and a buyer.
func uniform(seed uint64, i int) float64 {
	return float64(rand.NewPCG(seed, uint64(i)).Uint64()>>11) / (1 << 53)
}

// kind selects the kind of buyer i; the same seed selects the same kinds. Each buyer has a
// generator of its own, so that the kinds do not depend on the order of goroutines.
func (p Plan) kind(i int) Kind {
	draw := uniform(p.Seed, i)
	switch {
	case draw < p.Hostile:
		return Hostile
	case draw < p.Hostile+p.Impatient:
		return Impatient
	default:
		return Polite
	}
}

// playBuyer runs buyer i, which was due at the given time. i also selects the buyer's API, so that
// goroutines share no counter.
func (r *runner) playBuyer(ctx context.Context, i int, due time.Time) {
	id, kind := r.FirstID+int64(i), r.kind(i)
	r.recorder.addArrival(time.Since(due))
	token, err := r.Token(id)
	if err != nil {
		r.recorder.addBuyer(kind, buyer.Result{BuyerID: id}, err)
		return
	}
	b := buyer.Buyer{
		Client: apiclient.Client{Base: r.Bases[i%len(r.Bases)], Token: token, HTTP: r.HTTP},
		ID:     id, GoodsID: r.GoodsID, Quantity: r.Quantity, Patience: r.Patience, Due: due,
		RetryErrors: true, Bases: r.Bases, NotStartedRetry: 50 * time.Millisecond,
		OnCall: r.recorder.addCall, OnAccepted: r.recorder.addAccepted,
		OnPath: func(path string) { r.captured.AddPath(id, path) },
	}
	if r.Room != nil {
		b.Room = &buyer.Room{Habit: r.habit(i), Monitor: r.monitor}
	}
	switch kind {
	case Hostile:
		r.recorder.addHostile(b.Attack(ctx, r.captured))
		return
	case Impatient:
		b.ParallelRequests, b.MaxRetryWait, b.BuysAgain = 3, 100*time.Millisecond, true
	case Polite:
	}
	result, err := b.Buy(ctx)
	if result.OrderSn != "" {
		r.captured.AddOrder(id, result.OrderSn)
	}
	r.recorder.addBuyer(kind, result, err)
}
