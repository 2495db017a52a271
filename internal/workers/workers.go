package workers

import (
	"context"
	"log/slog"
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
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		run(ctx)
		select {
		case <-t.C:
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
