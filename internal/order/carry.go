package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/seckill"
)

// carrier carries units of a sale from one of its buckets to another. It is a cut of the one and a raise of the other, and the
// cut's row says both before anything is taken: a carrier that dies on the way leaves what the steward finishes. The
// units are in one place at any moment, or in the air, and never in two.
type carrier struct {
	store ChangeStore
	shelf ChangeShelf
	giver *Giver
	seen  Observer
	now   func() time.Time
}

// carryTries is how often the end of a transfer is tried that lost its transaction to another.
const carryTries = 5

// carry takes units out of a bucket that was just looked at, and gives them to another; false where the bucket did not have
// so many any more. Once begun it goes on, whether the caller waits or not.
func (c carrier) carry(ctx context.Context, from seckill.View, to, units int64) (bool, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return false, fmt.Errorf("make an id: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*redisDeadline)
	defer cancel()
	cut := Cut{ID: id.String(), GoodsID: from.GoodsID, Epoch: from.Epoch, Quantity: units, To: to, State: CutOpen, BegunAt: c.now()}
	if err := c.store.BeginTransfer(ctx, cut); err != nil {
		return false, err
	}
	return c.finish(ctx, cut)
}

// finish ends a transfer and gives the units; what fails is the steward's and the giver's to finish.
func (c carrier) finish(ctx context.Context, cut Cut) (bool, error) {
	ended, _, err := finishCut(ctx, c.store, c.shelf, cut, c.now())
	pause := retryPause()
	for n := 1; n < carryTries && errors.Is(err, ErrTryAgain); n++ {
		sleep(ctx, pause.NextBackOff())
		ended, _, err = finishCut(ctx, c.store, c.shelf, cut, c.now())
	}
	if err != nil {
		return false, fmt.Errorf("carry units to bucket %d: %w", cut.To, err)
	}
	tellCarried(c.seen, ended)
	if ended.Gives != nil {
		c.giver.Give(ctx, []Move{*ended.Gives})
	}
	return ended.State == CutDone, nil
}

// tellCarried tells an observer of a transfer that has just been written. Whoever ends a cut tells, its maker or the steward,
// and nobody else: MySQL ends a row once, and only who did it hears what is to be given.
func tellCarried(o Observer, ended Cut) {
	if ended.Gives != nil {
		o.Carried(ended.Quantity)
	}
}
