package reconcile

import (
	"context"
	"iter"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Store is the part of MySQL that ledgers, repairs and samples use.
type Store interface {
	order.Clock
	// Database reads the stock and the active units of a sale.
	Database(ctx context.Context, goodsID int64) (seckill.Database, error)
	// StatusOf returns the status of those of the orders that have a row, and Queued for
	// parked ones.
	StatusOf(ctx context.Context, goodsID int64, sns []string) (map[string]order.Status, error)
	// OrdersByNumber returns those of at most 1000 orders that have a row, and parked ones.
	OrdersByNumber(ctx context.Context, goodsID int64, sns []string) ([]order.Order, error)
	// HoldingPages iterates over the orders that buyers hold in an epoch, as for rebuild.Store.
	HoldingPages(
		ctx context.Context, goodsID, epoch int64, redisNow time.Time,
	) iter.Seq2[[]order.Held, error]
	// Unreleased counts a goods' stock moves that are not released and its open stock cuts, and
	// returns when the oldest was made; zero if there is none.
	Unreleased(ctx context.Context, goodsID int64) (n int, oldest time.Time, err error)
	// ReturnUnits writes a stock move that returns the units that Redis holds for a final order.
	// The error is Conflict if the order is active by now, and Unavailable if it has a move
	// already.
	ReturnUnits(ctx context.Context, goodsID int64, l reservation.OrderLine, now time.Time) error
	// CountDeadLetters counts the dead letters that wait for an operator.
	CountDeadLetters(ctx context.Context) (int64, error)
	// CountStoppedRefunds counts the refunds that wait for an operator.
	CountStoppedRefunds(ctx context.Context) (int64, error)
	// OldestRefund returns since when the oldest refund that is still tried is due; zero if none
	// is.
	OldestRefund(ctx context.Context) (time.Time, error)
	// CountLateOrders counts the parked orders.
	CountLateOrders(ctx context.Context) (int64, error)
}

// Redis holds the live state that a ledger compares with MySQL, and applies repairs.
type Redis interface {
	// View reads the state of a sale; seckill.ErrNotLoaded if Redis does not hold it.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	// PendingPages iterates over the pending reservations of a goods, as for outbox.Store.
	PendingPages(ctx context.Context, goodsID, count int64) iter.Seq2[[]order.Pending, error]
	// Settle turns pending reservations into sold units and returns how many it changed.
	Settle(ctx context.Context, goodsID int64, sns []string) (int, error)
	// NotHeld returns the numbers of those orders with units that their buyers' holdings lack.
	NotHeld(ctx context.Context, goodsID int64, orders []order.Held) ([]string, error)
	// Shut closes the gate of a sale, which the rebuilder then loads again. It changes nothing and
	// returns an error if Redis has a newer epoch than the given one.
	Shut(ctx context.Context, goodsID, epoch int64) (lease string, err error)
	// Memory returns the memory use of the fullest master.
	Memory(ctx context.Context) (Memory, error)
}
