package inventory

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// Cut takes units of an exposed sale off sale. Its row is written before Redis is asked for the units, and says all that it
// takes to finish the change, whoever does that (ADR 0030).
type StockCut struct {
	ID       string // a UUIDv7; Redis judges it once in an epoch
	GoodsID  int64
	Epoch    int64 // whose Redis is asked
	Quantity int64 // > 0
	Wanted   seckill.Change
	By       seckill.Actor
	Key      string // its Idempotency-Key, or ""
	State    CutState
	BegunAt  time.Time
}

// CutState is where a cut is.
type CutState string

// The states of a cut.
const (
	CutOpen   CutState = "open"   // Redis is to be asked, or was asked and MySQL does not have it yet
	CutDone   CutState = "done"   // both have it
	CutUndone CutState = "undone" // neither has it
)

// StockMove is the cut as Redis takes it.
func (c StockCut) Move() order.StockMove {
	return order.StockMove{ID: c.ID, GoodsID: c.GoodsID, Epoch: c.Epoch, Kind: order.MoveDelta, Quantity: -c.Quantity}
}

// BegunChange is what the first step of a change did.
type BegunChange struct {
	Sale  seckill.Sale      // as it is now; where the change was made before, as it was answered then
	Moves []order.StockMove // of a raise, to be given to Redis
	Cut   *StockCut         // a cut to be finished; then nothing has changed yet
}

// ChangeStore is MySQL as changes of sales need it.
type ChangeStore interface {
	// Change changes a sale in one transaction, or writes the cut with which the change begins.
	Change(ctx context.Context, goodsID int64, c seckill.Change, once seckill.IdempotencyKey, now time.Time) (BegunChange, error)
	// Answered gives the first answer to a request whose key was here before; false where there is none yet.
	Answered(ctx context.Context, once seckill.IdempotencyKey, now time.Time) (seckill.Sale, bool, error)
	// EndCut writes what Redis said of a cut: done or undone; or it gives the cut a newer epoch and leaves it open.
	EndCut(ctx context.Context, c StockCut, said order.MoveResult, now time.Time) (StockCut, seckill.Sale, error)
	// OpenCuts lists cuts begun before a moment and not ended, oldest first.
	OpenCuts(ctx context.Context, before time.Time, limit int) ([]StockCut, error)
	// DeleteDraft removes a draft; any other sale is a Conflict.
	DeleteDraft(ctx context.Context, goodsID int64, once seckill.IdempotencyKey, now time.Time) error
	// Sale reads the row of a sale.
	Sale(ctx context.Context, goodsID int64) (seckill.Sale, error)
	// ForgetKeys forgets Idempotency-Keys made before a moment.
	ForgetKeys(ctx context.Context, before time.Time) error
}

// ChangeRedis is Redis as changes of sales need it.
type ChangeRedis interface {
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	UpdateSale(ctx context.Context, sale seckill.Sale) error
	MoveApplier
}

// errCutOpen says that Redis can't judge a cut now: its row stays, and the steward finishes it.
var errCutOpen = errors.New("the cut is written and will be finished as soon as redis can be asked")

// finishCut asks Redis for a cut's units and writes what it said, until the cut is ended. Each step may be taken by
// many at once and again: within an epoch Redis says the same of an id for ever, and MySQL ends a row once.
func finishCut(ctx context.Context, store ChangeStore, shelf ChangeRedis, c StockCut, now time.Time) (StockCut, seckill.Sale, error) {
	var sale seckill.Sale
	for range 3 { // a new epoch may begin in between, hardly two
		given, err := shelf.Release(ctx, c.GoodsID, []order.StockMove{c.Move()})
		if err != nil {
			return c, sale, err
		}
		if given[0] == order.MoveDeferred {
			return c, sale, errCutOpen
		}
		if c, sale, err = store.EndCut(ctx, c, given[0], now); err != nil || c.State != CutOpen {
			return c, sale, err
		}
	}
	return c, sale, errCutOpen
}
