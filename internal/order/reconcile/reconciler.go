package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Store is MySQL as the audit needs it.
type Store interface {
	Database(ctx context.Context, goodsID int64) (seckill.Database, error)
	// StatusOf tells the status of those of the orders that have a row.
	StatusOf(ctx context.Context, goodsID int64, sns []string) (map[string]order.Status, error)
	// OldestMoveNotGiven is when the oldest move of a goods that is not given was made; zero where there is none.
	OldestUnreleasedMove(ctx context.Context, goodsID int64) (time.Time, error)
	// CountNotGiven counts a goods' moves that are not given, and its cuts that have not ended.
	CountUnreleased(ctx context.Context, goodsID int64) (int, error)
	// PlanReturn writes a move that gives back what Redis took for an order; Unavailable where it has one already.
	ScheduleRelease(ctx context.Context, goodsID int64, l reservation.OrderLine, at time.Time) (order.StockMove, error)
}

// RedisStore is Redis as the audit needs it.
type RedisStore interface {
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	PendingPage(ctx context.Context, goodsID int64, cursor uint64, count int64) ([]order.Pending, uint64, error)
	Settle(ctx context.Context, goodsID int64, sns []string) (int, error)
}

// Reconciler holds what Redis says against what MySQL says, by order number: two totals are never read at the same
// instant, but one number is in one place or the other.
type Reconciler struct {
	live  *livesales.List
	store Store
	redis RedisStore
	relay *outbox.Relay
	now   func() time.Time
	log   *slog.Logger

	observer Metrics
	quiet    map[int64]idleState // goods -> what was last seen of it; the round's alone
}

// idleState is a sale with nothing under way, and whether its totals have been held against MySQL's.
type idleState struct {
	available, sold, epoch int64
	compared               bool
}

const (
	// tolerance is how long an order number may be in one place and not in the other: on its way.
	tolerance         = 5 * time.Second
	reconcileInterval = 5 * time.Second
	PendingChunk      = 500
	// republishAfter is how old a reservation must be before it is published again though the queue once confirmed it. After
	// that it is published at twice the age each time: a slow consumer must not get its backlog again and again.
	republishAfter = time.Minute
)

// NewReconciler makes an auditor. An auditor that only answers ledgers needs neither live nor relay.
func NewReconciler(live *livesales.List, store Store, shelf RedisStore, relay *outbox.Relay, observer Metrics, log *slog.Logger) *Reconciler {
	return &Reconciler{live: live, store: store, redis: shelf, relay: relay, now: time.Now, log: log, observer: observer, quiet: make(map[int64]idleState)}
}

// Ledger accounts for every unit of a sale. It is Unavailable while the sale is being rebuilt. The ledger of a draft, and of a
// sale that is over and gone from Redis, comes from MySQL alone.
func (a *Reconciler) Ledger(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error) {
	v, err := a.redis.View(ctx, sale.GoodsID)
	switch {
	case errors.Is(err, seckill.ErrNotLoaded):
		return a.fromMySQL(ctx, sale)
	case err != nil:
		return seckill.Ledger{}, seckill.NewUnavailable("the ledger can't be read", err)
	case v.Gate != seckill.GateOpen:
		return seckill.Ledger{}, seckill.NewRebuilding(&seckill.GateError{State: v.Gate, Epoch: v.Epoch})
	}
	db, err := a.store.Database(ctx, sale.GoodsID)
	if err != nil {
		return seckill.Ledger{}, seckill.NewUnavailable("the ledger's database side can't be read", err)
	}
	l := seckill.Ledger{Total: v.Total, Available: v.Available, Pending: v.Pending, Sold: v.Sold, Epoch: v.Epoch, Database: db}
	if l.Differences, err = a.judged(ctx, v, db); err != nil {
		return seckill.Ledger{}, seckill.NewUnavailable("the ledger can't be audited", err)
	}
	l.Balanced = l.AddsUp() && !l.Differences.Any()
	return l, nil
}

func (a *Reconciler) fromMySQL(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error) {
	if sale.Status == seckill.Exposed && a.now().Before(sale.EndAt) {
		return seckill.Ledger{}, seckill.NewRebuilding(&seckill.GateError{State: seckill.GateMissing})
	}
	db, err := a.store.Database(ctx, sale.GoodsID)
	if err != nil {
		return seckill.Ledger{}, seckill.NewUnavailable("the ledger can't be read", err)
	}
	l := seckill.Ledger{Total: sale.Total, Available: db.Stock, Sold: db.Active, Epoch: sale.Epoch, Database: db}
	l.Balanced = l.AddsUp()
	return l, nil
}

// judged is what differs between a view and the database's word, and by which numbers.
func (a *Reconciler) judged(ctx context.Context, v seckill.View, db seckill.Database) (seckill.Differences, error) {
	d, f, err := a.differs(ctx, v)
	if err != nil || v.Pending > 0 || len(f.failed) > 0 || d.Any() {
		return d, err
	}
	d.Totals, err = a.totals(ctx, v, db)
	return d, err
}

// differs counts, by number, what has been in one place only for longer than on its way.
func (a *Reconciler) differs(ctx context.Context, v seckill.View) (d seckill.Differences, f findings, err error) {
	oldest, err := a.store.OldestUnreleasedMove(ctx, v.GoodsID)
	if err != nil {
		return d, f, err
	}
	if !oldest.IsZero() && a.now().Sub(oldest) > tolerance {
		if d.Unreleased, err = a.store.CountUnreleased(ctx, v.GoodsID); err != nil {
			return d, f, err
		}
	}
	if v.Pending > 0 {
		if f, err = a.compare(ctx, v); err != nil {
			return d, f, err
		}
	}
	if !oldest.IsZero() {
		f.failed = nil // their units are on their way back
	}
	d.Unsettled, d.Unwritten = len(f.written)+len(f.failed), len(f.overdue(v.Now))
	return d, f, nil
}

// totals tells, as 0 or 1, whether totals differ with nothing under way.
func (a *Reconciler) totals(ctx context.Context, v seckill.View, db seckill.Database) (int, error) {
	if db.Stock == v.Available && db.Active == v.Sold {
		return 0, nil
	}
	quiet, err := a.stillQuiet(ctx, v)
	if quiet {
		return 1, err
	}
	return 0, err
}

// stillQuiet tells whether nothing has moved in Redis since a view without anything pending: then what MySQL said in
// between is of the same state, and totals may be held against each other after all.
func (a *Reconciler) stillQuiet(ctx context.Context, before seckill.View) (bool, error) {
	after, err := a.redis.View(ctx, before.GoodsID)
	if err != nil {
		return false, err
	}
	quiet := after.Pending == 0 && after.Available == before.Available && after.Sold == before.Sold && after.Epoch == before.Epoch
	if !quiet {
		return false, nil
	}
	oldest, err := a.store.OldestUnreleasedMove(ctx, before.GoodsID)
	return oldest.IsZero(), err
}

// tell writes a line for each difference.
func (a *Reconciler) logDifferences(ctx context.Context, v seckill.View, d seckill.Differences, f findings) {
	log := a.log.With("goods_id", v.GoodsID)
	each := func(what string, list []order.Pending) {
		for i, p := range list {
			if i == toldAtMost {
				log.WarnContext(ctx, "and more of the same", "difference", what, "orders", len(list)-i)
				return
			}
			log.WarnContext(ctx, "an order is in one place and not in the other", "difference", what,
				"order_sn", p.OrderSn, "age_seconds", v.Now.Sub(p.At).Seconds())
		}
	}
	each("written, not settled", f.written)
	each("failed, its units still held", f.failed)
	each("promised, not written", f.overdue(v.Now))
	if d.Unreleased > 0 {
		log.WarnContext(ctx, "units are not given back to redis", "difference", "not given", "moves", d.Unreleased)
	}
	if d.Totals > 0 {
		log.LogAttrs(ctx, slog.LevelError, "totals differ with nothing under way: have the sale rebuilt (seckillctl rebuild)",
			slog.String("difference", "totals"), slog.Int64("available", v.Available), slog.Int64("sold", v.Sold))
	}
}

// Metrics receives the result of each round of the audit.
type Metrics interface {
	// Report is called after each round over a sale, every 5 s and on demand.
	Audited(a Report)
}

// Report is what one round of the audit found of a sale.
type Report struct {
	GoodsID    int64
	BacklogAge time.Duration // of the oldest reservation that MySQL may not have; 0 where there is none
	Found      seckill.Differences
	Repaired   int // of those: settled, published again, or on their way back
}
