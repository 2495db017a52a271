package order

import (
	"context"
	"errors"

	"flashsale.dev/seckill/internal/workers"
)

// transactionTries is how often a change is tried that lost its transaction to another.
const transactionTries = 5

// RetryTransaction tries a transaction that lost to another one in a new one.
func RetryTransaction(ctx context.Context, try func() error) error {
	pause := workers.RetryBackoff()
	err := try()
	for n := 1; n < transactionTries && errors.Is(err, ErrTryAgain) && ctx.Err() == nil; n++ {
		workers.Sleep(ctx, pause.NextBackOff())
		err = try()
	}
	return err
}
