package order

import (
	"context"
	"errors"

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
