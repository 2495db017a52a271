package rebuild

import (
	"context"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Opener begins epochs in MySQL and loads them into Redis. It does not drain reservations under
// way; the Rebuilder does that first.
type Opener struct {
	epochs Store
	loader Redis
	now    func() time.Time
}

// NewOpener makes an opener.
func NewOpener(epochs Store, loader Redis) *Opener {
	return &Opener{epochs: epochs, loader: loader, now: time.Now}
}

// OpenFirst begins the first epoch of a draft, which has nothing to drain. The error is ErrFenced
// if the sale is no draft.
func (o *Opener) OpenFirst(ctx context.Context, goodsID int64) (seckill.Sale, error) {
	return o.Open(ctx, goodsID, FirstToken)
}

// Open begins an epoch under a fencing token. The error is ErrFenced if a newer rebuild began.
func (o *Opener) Open(ctx context.Context, goodsID, token int64) (seckill.Sale, error) {
	snap, err := o.epochs.BeginEpoch(ctx, goodsID, token, o.now())
	if err != nil {
		return seckill.Sale{}, fmt.Errorf("begin an epoch: %w", err)
	}
	loaded, err := o.loader.Load(ctx, snap)
	if err != nil {
		return seckill.Sale{}, fmt.Errorf("load epoch %d: %w", snap.Epoch, err)
	}
	if !loaded {
		return seckill.Sale{}, fmt.Errorf("load epoch %d: %w", snap.Epoch, ErrFenced)
	}
	return snap.Sale, nil
}
