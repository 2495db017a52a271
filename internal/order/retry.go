package order

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/workers"
)

// transactionTries bounds the attempts of one change.
const transactionTries = 5

// RetryTransaction calls try until it returns no ErrTryAgain, at most five times with backoff. It
// returns the last error.
func RetryTransaction(ctx context.Context, try func() error) error {
	pause := workers.RetryBackoff()
	err := try()
	for n := 1; n < transactionTries && errors.Is(err, ErrTryAgain) && ctx.Err() == nil; n++ {
		workers.Sleep(ctx, pause.NextBackOff())
		err = try()
	}
	return err
}

// changeDeadline bounds a change of orders, with the attempts that repeat it.
const changeDeadline = 5 * time.Second

// Change runs a change of orders at the database's time, with the attempts of RetryTransaction. It
// continues after the client has disconnected.
func Change(
	ctx context.Context, clock Clock, step func(ctx context.Context, now time.Time) error,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeDeadline)
	defer cancel()
	return RetryTransaction(ctx, func() error {
		now, err := clock.Now(ctx)
		if err != nil {
			return err
		}
		return step(ctx, now)
	})
}
