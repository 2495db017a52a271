package workers

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// RetryBackoff returns the pauses between unlimited attempts: 50 ms to 2 s, with jitter.
func RetryBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 50*time.Millisecond, 2*time.Second
	b.Reset()
	return b
}

// LongPause returns the pause before a retry of what may fail for hours. It doubles from first up
// to most with each retry before, and varies by a fifth, so that what failed together is spread.
func LongPause(first, most time.Duration, retries int) time.Duration {
	pause := min(first<<min(retries, 20), most)
	return time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64()))
}

// Sleep waits for d or until ctx ends; check ctx.Err afterwards.
func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Every calls run immediately and then at each interval until ctx ends. It returns nil.
func Every(ctx context.Context, interval time.Duration, run func(context.Context)) error {
	return EveryAndAfter(ctx, interval, nil, run)
}

// Signal sends a signal to a channel that holds one, unless it has one already or is nil.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// EveryAndAfter is Every that also calls run after each signal.
func EveryAndAfter(
	ctx context.Context, interval time.Duration, signal <-chan struct{},
	run func(context.Context),
) error {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		run(ctx)
		select {
		case <-t.C:
		case <-signal:
		case <-ctx.Done():
			return nil
		}
	}
}

// Warn logs that the work of a loop has failed, unless err is nil or ctx has ended.
func Warn(ctx context.Context, log *slog.Logger, problem string, err error, attrs ...any) {
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, problem, append(attrs, "err", err)...)
	}
}
