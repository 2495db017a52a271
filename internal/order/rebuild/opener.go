package rebuild

import (
	"context"
	"fmt"
	"time"

	"errors"

	"flashsale.dev/seckill/internal/seckill"
)

// Epochs is where epochs begin: in MySQL, with the goods row locked.
type Epochs interface {
	// BeginEpoch exposes a draft, or keeps an exposed or closed sale as it is, counts its epoch up and reads all that
	// the epoch starts from, in one transaction. ErrFenced where the token is not the newest, or is
	// FirstToken and the sale no draft.
	BeginEpoch(ctx context.Context, goodsID, token int64, now time.Time) (Snapshot, error)
}

// Loader puts an epoch into Redis.
type Loader interface {
	// Load returns false where Redis has that epoch already, or a newer one, or where the gate is open: what was sold since
	// it was shut, on a master that was promoted meanwhile, has to be drained first.
	Load(ctx context.Context, snap Snapshot) (bool, error)
}

// Opener begins epochs: it reads the truth and loads it. It does not drain what is under way; see order.Rebuilder.
type Opener struct {
	epochs Epochs
	loader Loader
	now    func() time.Time
}

// NewOpener makes an opener.
func NewOpener(epochs Epochs, loader Loader) *Opener {
	return &Opener{epochs: epochs, loader: loader, now: time.Now}
}

// OpenFirst begins the first epoch of a draft: nothing can be under way, so there is nothing to drain. ErrFenced where
// it is a draft no longer.
func (o *Opener) OpenFirst(ctx context.Context, goodsID int64) (seckill.Sale, error) {
	return o.Open(ctx, goodsID, FirstToken)
}

// Open begins an epoch under a fencing token.
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

// ErrFenced says that a newer rebuild of the same sale has begun, or that its gate was opened in the middle of this one, which
// must stop and has changed nothing in Redis.
var ErrFenced = errors.New("a newer rebuild of this sale has begun, or its gate was opened meanwhile")

// FirstToken stands for a fencing token where a draft's first epoch begins: it begins no other.
const FirstToken = 0
