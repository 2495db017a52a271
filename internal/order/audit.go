package order

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// AuditStore is MySQL as the audit needs it.
type AuditStore interface {
	Database(ctx context.Context, goodsID int64) (seckill.Database, error)
	// StatusOf tells the status of those of the orders that have a row.
	StatusOf(ctx context.Context, goodsID int64, sns []string) (map[string]Status, error)
	// OldestMoveNotGiven is when the oldest move of a goods that is not given was made; zero where there is none.
	OldestMoveNotGiven(ctx context.Context, goodsID int64) (time.Time, error)
	// CountNotGiven counts a goods' moves that are not given, and its cuts that have not ended.
	CountNotGiven(ctx context.Context, goodsID int64) (int, error)
	// PlanReturn writes a move that gives back what Redis took for an order; Unavailable where it has one already.
	PlanReturn(ctx context.Context, goodsID int64, l seckill.Line, at time.Time) (Move, error)
}

// AuditShelf is Redis as the audit needs it.
type AuditShelf interface {
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	PendingPage(ctx context.Context, goodsID int64, cursor uint64, count int64) ([]Pending, uint64, error)
	Settle(ctx context.Context, goodsID int64, sns []string) (int, error)
}

// Auditor holds what Redis says against what MySQL says, by order number: two totals are never read at the same
// instant, but one number is in one place or the other.
type Auditor struct {
	live  *Live
	store AuditStore
	shelf AuditShelf
	relay *Relay
	now   func() time.Time
	log   *slog.Logger

	observer Observer
	quiet    map[int64]quietness // goods -> what was last seen of it; the round's alone
}

// quietness is a sale with nothing under way, and whether its totals have been held against MySQL's.
type quietness struct {
	available, sold, epoch int64
	compared               bool
}

const (
	// tolerance is how long an order number may be in one place and not in the other: on its way.
	tolerance  = 5 * time.Second
	auditEvery = 5 * time.Second
	auditChunk = 500
	// refeedAfter is how old a reservation must be before it is published again though the queue once confirmed it. After
	// that it is published at twice the age each time: a slow consumer must not get its backlog again and again.
	refeedAfter = time.Minute
)

// NewAuditor makes an auditor. An auditor that only answers ledgers needs neither live nor relay.
func NewAuditor(live *Live, store AuditStore, shelf AuditShelf, relay *Relay, log *slog.Logger) *Auditor {
	return &Auditor{live: live, store: store, shelf: shelf, relay: relay, now: time.Now, log: log, observer: Unobserved{}, quiet: make(map[int64]quietness)}
}

// ObservedBy has an observer told; to be called before anything else.
func (a *Auditor) ObservedBy(o Observer) *Auditor { a.observer = o; return a }

// Ledger accounts for every unit of a sale. It is Unavailable while the sale is being rebuilt. The ledger of a draft, and of a
// sale that is over and gone from Redis, comes from MySQL alone.
func (a *Auditor) Ledger(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error) {
	v, err := a.shelf.View(ctx, sale.GoodsID)
	switch {
	case errors.Is(err, seckill.ErrNotLoaded):
		return a.fromMySQL(ctx, sale)
	case err != nil:
		return seckill.Ledger{}, seckill.Down("the ledger can't be read", err)
	case v.Gate != seckill.GateOpen:
		return seckill.Ledger{}, seckill.Rebuilding(&seckill.GateError{State: v.Gate, Epoch: v.Epoch})
	}
	db, err := a.store.Database(ctx, sale.GoodsID)
	if err != nil {
		return seckill.Ledger{}, seckill.Down("the ledger's database side can't be read", err)
	}
	l := seckill.Ledger{Total: v.Total, Available: v.Available, Pending: v.Pending, Sold: v.Sold, Epoch: v.Epoch, Database: db}
	if l.Differences, err = a.judged(ctx, v, db); err != nil {
		return seckill.Ledger{}, seckill.Down("the ledger can't be audited", err)
	}
	l.Balanced = l.Adds() && !l.Differences.Any()
	return l, nil
}

func (a *Auditor) fromMySQL(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error) {
	if sale.Status == seckill.Exposed && a.now().Before(sale.EndAt) {
		return seckill.Ledger{}, seckill.Rebuilding(&seckill.GateError{State: seckill.GateMissing})
	}
	db, err := a.store.Database(ctx, sale.GoodsID)
	if err != nil {
		return seckill.Ledger{}, seckill.Down("the ledger can't be read", err)
	}
	l := seckill.Ledger{Total: sale.Total, Available: db.Stock, Sold: db.Active, Epoch: sale.Epoch, Database: db}
	l.Balanced = l.Adds()
	return l, nil
}

// judged is what differs between a view and the database's word, and by which numbers.
func (a *Auditor) judged(ctx context.Context, v seckill.View, db seckill.Database) (seckill.Differences, error) {
	d, f, err := a.differs(ctx, v)
	if err != nil || v.Pending > 0 || len(f.failed) > 0 || d.Any() {
		return d, err
	}
	d.Totals, err = a.totals(ctx, v, db)
	return d, err
}

// differs counts, by number, what has been in one place only for longer than on its way.
func (a *Auditor) differs(ctx context.Context, v seckill.View) (d seckill.Differences, f findings, err error) {
	oldest, err := a.store.OldestMoveNotGiven(ctx, v.GoodsID)
	if err != nil {
		return d, f, err
	}
	if !oldest.IsZero() && a.now().Sub(oldest) > tolerance {
		if d.NotGiven, err = a.store.CountNotGiven(ctx, v.GoodsID); err != nil {
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
func (a *Auditor) totals(ctx context.Context, v seckill.View, db seckill.Database) (int, error) {
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
func (a *Auditor) stillQuiet(ctx context.Context, before seckill.View) (bool, error) {
	after, err := a.shelf.View(ctx, before.GoodsID)
	if err != nil {
		return false, err
	}
	quiet := after.Pending == 0 && after.Available == before.Available && after.Sold == before.Sold && after.Epoch == before.Epoch
	if !quiet {
		return false, nil
	}
	oldest, err := a.store.OldestMoveNotGiven(ctx, before.GoodsID)
	return oldest.IsZero(), err
}
