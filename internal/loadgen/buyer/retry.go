package buyer

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// insist makes a call again while the answer is "later" and patience lasts. Asking again is safe: the contract says so.
func (b Buyer) insist(ctx context.Context, t *Told, until time.Time, step Step, path string) (apiclient.Answer, error) {
	for turn := 0; ; turn++ {
		a, err := b.ask(ctx, t, turn, step, path)
		switch {
		case err != nil && b.Stubborn && ctx.Err() == nil && (a.Status == 0 || a.Status >= 500):
			t.Broken++
			a = apiclient.Answer{RetryAfter: brokenPause}
		case err != nil:
			return a, err
		case a.Reason == "NOT_STARTED" && b.Early > 0:
			t.Early++
			a.RetryAfter = b.Early
		case !t.later(a):
			return a, nil
		}
		if time.Now().After(until) {
			return a, nil
		}
		select {
		case <-time.After(b.pause(a)):
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

// Pauses between one call and the next.
const (
	brokenPause = 100 * time.Millisecond // after a connection broke
	leastPause  = 5 * time.Millisecond   // where the answer names none
)

func (b Buyer) pause(a apiclient.Answer) time.Duration {
	pause := max(leastPause, a.RetryAfter)
	if b.Hurry > 0 {
		pause = min(pause, b.Hurry)
	}
	return pause
}

// ask makes one call and tells of it. The first of a buyer was due when the buyer was: waiting to make it counts.
func (b Buyer) ask(ctx context.Context, t *Told, turn int, step Step, path string) (apiclient.Answer, error) {
	meant := time.Now()
	if !t.due.IsZero() {
		meant, t.due = t.due, time.Time{}
	}
	method := http.MethodPost
	if step == StepOrder {
		method = http.MethodGet
	}
	a, err := b.turnTo(turn).Call(ctx, method, path, nil)
	if b.Saw != nil {
		b.Saw(Call{Step: step, Answer: a, Err: err, Took: time.Since(meant)})
	}
	return a, err
}

// turnTo is the buyer's own API at first, and then each of them in turn.
func (b Buyer) turnTo(turn int) apiclient.Client {
	c := b.Client
	if b.Stubborn && len(b.Bases) > 0 && turn > 0 {
		c.Base = b.Bases[(int(b.ID)+turn)%len(b.Bases)]
	}
	return c
}

// watch looks at the order until it is written, each time after a longer pause, up to Glance.
func (b Buyer) watch(ctx context.Context, t *Told, until time.Time) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, cmp.Or(b.Glance, 500*time.Millisecond)) {
		a, err := b.insist(ctx, t, until, StepOrder, "/orders/"+t.OrderSn)
		if err != nil || b.Stubborn && (a.Status == 0 || a.Status >= 500) {
			return err // patience has ended: the last status stands
		}
		if b.Stubborn && a.Status >= 400 {
			t.see(a.Reason)
			return nil
		}
		var order struct {
			Status string `json:"status"`
		}
		if err := a.Into(&order); err != nil {
			return err
		}
		t.see(order.Status)
		if t.Status != "queued" || time.Now().After(until) {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
