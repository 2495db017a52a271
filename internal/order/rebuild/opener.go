package rebuild

import (
	"context"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Epochs begins epochs in MySQL.
type Epochs interface {
	// BeginEpoch exposes a draft, or keeps the status of an exposed or closed sale. With the goods
	// row locked, it increments the epoch and reads the state that the epoch starts from. The error
	// is ErrFenced if the token is not the newest, or is FirstToken and the sale is no draft.
	BeginEpoch(ctx context.Context, goodsID, token int64, now time.Time) (Snapshot, error)
}

// Loader loads epochs into Redis.
type Loader interface {
	// Load returns false if Redis holds this epoch or a newer one, or if the gate is open. A gate
	// can be open after a failover; then the new master's reservations must be drained first.
	Load(ctx context.Context, snap Snapshot) (bool, error)
}

// Opener begins epochs in MySQL and loads them into Redis. It does not drain reservations under
// way; the Rebuilder does that first.
type Opener struct {
	epochs Epochs
	loader Loader
	now    func() time.Time
}

// NewOpener makes an opener.
func NewOpener(epochs Epochs, loader Loader) *Opener {
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
