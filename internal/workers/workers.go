package workers

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// RetryBackoff spaces attempts that are repeated without a limit: from 50 ms to 2 s, with jitter.
func RetryBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 50*time.Millisecond, 2*time.Second
	b.Reset()
	return b
}

// Sleep waits, or returns early where ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Every calls once at once and then at each tick until ctx ends.
func Every(ctx context.Context, interval time.Duration, once func(context.Context)) error {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		once(ctx)
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}
