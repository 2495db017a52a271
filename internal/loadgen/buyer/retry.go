package buyer

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// CallWithRetry repeats a call until a final answer or until the deadline, where it makes the last
// one. A repeat is safe: the contract promises that the same path reserves nothing twice.
func (b Buyer) CallWithRetry(
	ctx context.Context, t *Result, until time.Time, step Step, path string,
) (apiclient.Answer, error) {
	method := http.MethodPost
	switch step {
	case StepOrder, StepPlace:
		method = http.MethodGet
	case StepLeave:
		method = http.MethodDelete
	}
	for attempt := 0; ; attempt++ {
		a, err := b.callOnce(ctx, t, attempt, step, method, path)
		if err != nil || a.Status >= 500 {
			t.failures++
		}
		switch {
		case err != nil && b.RetryErrors && ctx.Err() == nil && (a.Status == 0 || a.Status >= 500):
			a = apiclient.Answer{RetryAfter: errorPause}
		case err != nil:
			return a, err
		case a.Reason == "NOT_STARTED" && b.NotStartedRetry > 0:
			a.RetryAfter = b.NotStartedRetry
		case !mayRetry(a.Status):
			return a, nil
		}
		if time.Now().After(until) {
			return a, nil
		}
		pause := min(max(minPause, a.RetryAfter), time.Until(until))
		if b.MaxRetryWait > 0 {
			pause = min(pause, b.MaxRetryWait)
		}
		if err := apiclient.Sleep(ctx, pause); err != nil {
			return a, err
		}
	}
}

// Pauses between one call and the next.
const (
	errorPause = 100 * time.Millisecond // after a connection error
	minPause   = 5 * time.Millisecond   // if the answer has no Retry-After
)

// callOnce makes one call and reports it to OnCall. The first call counts from the buyer's due
// time, so that a delay of the generator is part of the latency (coordinated omission).
func (b Buyer) callOnce(
	ctx context.Context, t *Result, attempt int, step Step, method, path string,
) (apiclient.Answer, error) {
	planned := time.Now()
	if !t.due.IsZero() {
		planned, t.due = t.due, time.Time{}
	}
	a, err := b.clientFor(attempt).Call(ctx, method, path, nil)
	if b.OnCall != nil {
		b.OnCall(Call{Step: step, Answer: a, Err: err, Took: time.Since(planned)})
	}
	return a, err
}

// clientFor selects the buyer's own API first, then each of Bases in turn. A retry to another API
// also tests that nodes share all state.
func (b Buyer) clientFor(attempt int) apiclient.Client {
	c := b.Client
	if b.RetryErrors && len(b.Bases) > 0 && attempt > 0 {
		c.Base = b.Bases[(int(b.ID)+attempt)%len(b.Bases)]
	}
	return c
}

// pollOrder reads the order until it is written. Pauses double from 5 ms to MaxPollInterval.
func (b Buyer) pollOrder(ctx context.Context, t *Result, until time.Time) error {
	longest := cmp.Or(b.MaxPollInterval, 500*time.Millisecond)
	for pause := minPause; ; pause = min(2*pause, longest) {
		a, err := b.CallWithRetry(ctx, t, until, StepOrder, "/orders/"+t.OrderSn)
		if err != nil || b.RetryErrors && (a.Status == 0 || a.Status >= 500) {
			return err // out of time: the last status stands
		}
		if b.RetryErrors && a.Status >= 400 {
			t.AddStatus(a.Reason)
			return nil
		}
		var order struct {
			Status string `json:"status"`
		}
		if err := a.Into(&order); err != nil {
			return err
		}
		t.AddStatus(order.Status)
		if t.Status != "queued" || time.Now().After(until) {
			return nil
		}
		if err := apiclient.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
