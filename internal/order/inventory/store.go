package inventory

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// Store is the part of MySQL that keeps sales, changes of sales, stock cuts and stock moves.
type Store interface {
	order.Clock
	// CreateSale inserts a sale, or returns the one that the same key inserted before.
	CreateSale(
		ctx context.Context, sale seckill.Sale, key salechange.IdempotencyKey,
	) (seckill.Sale, error)
	// CloseSale closes an exposed sale and accepts a closed one; a draft is a Conflict.
	CloseSale(ctx context.Context, goodsID int64, now time.Time) (seckill.Sale, error)
	// SalesOf lists a merchant's sales ("": of all merchants), newest first, below a goods id (0:
	// from the newest).
	SalesOf(ctx context.Context, merchantID string, below int64, limit int) ([]seckill.Sale, error)
	// Change changes a sale in one transaction, or inserts the stock cut with which the change
	// begins.
	Change(
		ctx context.Context, goodsID int64, c salechange.Change, key salechange.IdempotencyKey,
		now time.Time,
	) (BegunChange, error)
	// Answered returns the first answer to an idempotency key; false if there is none yet.
	Answered(
		ctx context.Context, key salechange.IdempotencyKey, now time.Time,
	) (seckill.Sale, bool, error)
	// DeleteDraft removes a draft; any other sale is a Conflict.
	DeleteDraft(
		ctx context.Context, goodsID int64, key salechange.IdempotencyKey, now time.Time,
	) error
	// EndCut writes Redis' answer to a cut: done or undone. If a newer epoch has begun, it sets the
	// cut to that epoch and leaves it open.
	EndCut(
		ctx context.Context, c StockCut, result order.MoveResult, now time.Time,
	) (StockCut, seckill.Sale, error)
	// OpenCuts lists open cuts, oldest first, after an id ("": from the oldest). They were begun at
	// a moment or earlier, or before the database's clock was set back.
	OpenCuts(ctx context.Context, before time.Time, after string, limit int) ([]StockCut, error)
	// Sale reads one sale; seckill.ErrNoSuchGoods if there is none.
	Sale(ctx context.Context, goodsID int64) (seckill.Sale, error)
	// AuditTrail lists at most limit entries that a filter selects, newest first, with ids below
	// before ("": from the newest).
	AuditTrail(
		ctx context.Context, f salechange.AuditFilter, before string, limit int,
	) ([]salechange.AuditEntry, error)
	// UnreleasedAfter returns the next goods after the given one that has unreleased moves; 0 if
	// there is none. They were made at a moment or earlier, or before the database's clock was set
	// back, and are not marked as released.
	UnreleasedAfter(ctx context.Context, goodsID int64, madeBefore time.Time) (int64, error)
	// UnreleasedMoves lists these moves of a goods, oldest first.
	UnreleasedMoves(
		ctx context.Context, goodsID int64, madeBefore time.Time, limit int,
	) ([]order.StockMove, error)
	// MarkReleased records that Redis has applied the moves with these ids.
	MarkReleased(ctx context.Context, goodsID int64, ids []string, now time.Time) error
	// ReleaseLocked passes those of the moves to apply that are not marked as released, and marks
	// those that apply returns. Until then no other transaction can delete them.
	ReleaseLocked(
		ctx context.Context, goodsID int64, ids []string, now time.Time,
		apply func(moves []order.StockMove) (done []string, err error),
	) error
}

// Stores are the servers whose stock the package keeps in step.
type Stores struct {
	Store Store
	Redis Redis
	Log   *slog.Logger
}

// Redis holds the sales that buyers read, and applies moves and changes to them.
type Redis interface {
	// View reads the current state of a sale; seckill.ErrNotLoaded if Redis lacks it.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	// Views reads sales, by goods id. It leaves out those whose master does not answer.
	Views(ctx context.Context, goodsIDs []int64) map[int64]seckill.View
	// UpdateSale writes status, window, limit and rate, unless Redis has a newer version of them;
	// ErrNotLoaded if Redis lacks the sale's epoch. A load of an older version is then refused.
	UpdateSale(ctx context.Context, sale seckill.Sale) error
	// Release applies stock moves of one goods, each once by its id. It returns one result for
	// each, in order.
	Release(ctx context.Context, goodsID int64, moves []order.StockMove) ([]order.MoveResult, error)
}
