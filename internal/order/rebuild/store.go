package rebuild

import (
	"context"
	"iter"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Store is the part of MySQL that a rebuild, an opening and the retirer use.
type Store interface {
	order.Clock
	// NextRebuildToken takes the next fencing token of a goods; seckill.ErrNoSuchGoods if there is
	// none.
	NextRebuildToken(ctx context.Context, goodsID int64) (Token, error)
	// BarrierReached reports whether the batch writer recorded the barrier of an epoch and token.
	BarrierReached(ctx context.Context, goodsID, epoch, token int64) (bool, error)
	// Sale reads one sale; seckill.ErrNoSuchGoods if there is none.
	Sale(ctx context.Context, goodsID int64) (seckill.Sale, error)
	// StatusOf returns the status of those of the orders that have a row or are parked.
	StatusOf(ctx context.Context, goodsID int64, sns []string) (map[string]order.Status, error)
	// WriteMissing writes one order as failed, with its dead letter, which has its goods and the
	// reason. It leaves a written order alone. The error is ErrFenced if the token is not the
	// newest.
	WriteMissing(
		ctx context.Context, token int64, l reservation.OrderLine, d order.DeadLetter,
		now time.Time,
	) error
	// AddDeadLetter stores a dead letter of an order without a row.
	AddDeadLetter(ctx context.Context, d order.DeadLetter) error
	// BeginEpoch exposes a draft, or keeps the status of an exposed or closed sale. With the goods
	// row locked, it writes the parked orders, increments the epoch and reads the sale that the
	// epoch starts from. The error is ErrFenced if the token is not the newest, or is FirstToken
	// and the sale is no draft.
	BeginEpoch(ctx context.Context, goodsID, token int64, at order.Times) (seckill.Sale, error)
	// HoldingPages iterates over the orders that an epoch starts from, in pages of bounded size:
	// active ones, and final ones whose path may still be used at a moment of Redis' clock. The
	// error is ErrFenced if MySQL has another epoch. After an error the iteration ends.
	HoldingPages(
		ctx context.Context, goodsID, epoch int64, redisNow time.Time,
	) iter.Seq2[[]order.Held, error]
	// RecordOpening records that the gate of an epoch opens on the master with a lease. With "" it
	// records that the gate is open on none any more. The error is ErrFenced if the token is not
	// the newest, or if another epoch has begun. It is also ErrFenced for "" if the recorded
	// opening has not ended.
	RecordOpening(ctx context.Context, goodsID, token, epoch int64, lease string) error
	// EndOpening ends the recorded opening and returns its lease, also if it has ended before; ""
	// if none is recorded. The error is ErrFenced if the token is not the newest.
	EndOpening(ctx context.Context, goodsID, token int64) (lease string, err error)
	// OpenedOn returns the lease of a recorded opening that has not ended; else "".
	OpenedOn(ctx context.Context, goodsID int64) (lease string, err error)
	// OpenOn lists the sales whose opening is recorded on a lease and has not ended, but none that
	// was retired before a moment.
	OpenOn(ctx context.Context, lease string, retiredSince time.Time) ([]OpenSale, error)
	// OverBefore lists sales that ended before a moment and are not retired. It returns those
	// above a goods id, in ascending order.
	OverBefore(
		ctx context.Context, moment time.Time, above int64, limit int,
	) ([]seckill.Sale, error)
	// RetiredBetween lists sales retired in the half-open interval [from, to), in the same way.
	RetiredBetween(
		ctx context.Context, from, to time.Time, above int64, limit int,
	) ([]seckill.Sale, error)
	// Retire marks a sale as over for good; false if it is not, or has changed since it was read.
	Retire(ctx context.Context, sale seckill.Sale, overBefore, now time.Time) (bool, error)
}

// Token is a fencing token of a rebuild. Once it is taken, no epoch begins under an older one.
type Token struct {
	Number  int64
	Epoch   int64 // that MySQL had when the token was taken
	Retired bool  // the sale was over for good then
}

// Redis holds a sale's epoch, its gate, the lock of its rebuild, and its pending reservations.
type Redis interface {
	// View reads the current state of a sale; seckill.ErrNotLoaded, with Now set, if Redis lacks
	// it.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	// Views reads sales, by goods id. It leaves out those whose master does not answer. The gate of
	// a sale that Redis lacks is missing.
	Views(ctx context.Context, goodsIDs []int64) map[int64]seckill.View
	// Shut closes the gate. Afterwards Redis refuses to load an epoch up to the given one. It
	// returns the lease of the master. The error is ErrFenced if Redis has a newer epoch.
	Shut(ctx context.Context, goodsID, epoch int64) (lease string, err error)
	// Lease reads the lease and the time of the master of a goods, together.
	Lease(ctx context.Context, goodsID int64) (Lease, error)
	// OpenGate opens the gate of a loaded epoch for a time, or renews it; false if it is shut or
	// the master has another epoch or lease.
	OpenGate(ctx context.Context, goodsID, epoch int64, t OpenTime) (bool, error)
	// RenewGates renews the gates that times returns for the lease of each master.
	RenewGates(
		ctx context.Context, times func(context.Context, Lease) ([]OpenSale, OpenTime, error),
	) error
	// LockRebuild takes the lock and extends it until unlock; ok is false if another holds it. The
	// lock of a killed process ends after its lifetime.
	LockRebuild(
		ctx context.Context, goodsID int64, life time.Duration,
	) (unlock func(), ok bool, err error)
	// PendingPages iterates over the pending reservations of a goods, as for outbox.Store.
	PendingPages(ctx context.Context, goodsID, count int64) iter.Seq2[[]order.Pending, error]
	// Load stages one page of orders at a time. Then it begins the epoch of the sale that current
	// returns. It returns false, and the sale is as before, if
	//   - Redis has this epoch or a newer one, or Shut has refused the epoch;
	//   - a merchant's change has brought a newer version of the sale to Redis;
	//   - the gate is open, as after a failover: the new master's reservations are not drained yet;
	//   - Redis has restarted since the first page, or has lost a page.
	Load(
		ctx context.Context, goodsID int64, pages iter.Seq2[[]order.Held, error],
		current func() (seckill.Sale, error),
	) (bool, error)
	// Retire removes a sale from Redis. It returns false if Redis keeps the sale: a merchant has
	// changed it since, it was built again, or it has orders that are pending or in the outbox.
	Retire(ctx context.Context, sale seckill.Sale) (bool, error)
}
