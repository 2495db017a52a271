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
	return &Auditor{live: live, store: store, shelf: shelf, relay: relay, now: time.Now, log: log}
}

// Ledger accounts for every unit of a sale. It is Unavailable while the sale is being rebuilt; a draft's, and that of a
// sale that is over and gone from Redis, come from MySQL alone.
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
	differs, err := a.differs(ctx, v, db)
	if err != nil {
		return seckill.Ledger{}, seckill.Down("the ledger can't be audited", err)
	}
	l.Balanced = l.Adds() && !differs
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

// differs tells whether an order number has been in one place only for longer than the tolerance.
func (a *Auditor) differs(ctx context.Context, v seckill.View, db seckill.Database) (bool, error) {
	oldest, err := a.store.OldestMoveNotGiven(ctx, v.GoodsID)
	if err != nil {
		return false, err
	}
	if !oldest.IsZero() {
		return a.now().Sub(oldest) > tolerance, nil
	}
	if v.Pending > 0 {
		found, err := a.compare(ctx, v)
		return found.unsettled() > 0, err
	}
	if db.Stock == v.Available && db.Active == v.Sold {
		return false, nil
	}
	return a.stillQuiet(ctx, v)
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

// Run audits and mends until ctx ends.
func (a *Auditor) Run(ctx context.Context) error { return every(ctx, auditEvery, a.runOnce) }

func (a *Auditor) runOnce(ctx context.Context) {
	for _, sale := range a.live.Sales() {
		if err := a.Mend(ctx, sale.GoodsID); err != nil && ctx.Err() == nil && !errors.Is(err, ErrQueueDown) {
			a.log.WarnContext(ctx, "audit goes on later", "goods_id", sale.GoodsID, "err", err)
		}
	}
}

// Mend settles what is written and still pending, and publishes again what is not written after a minute.
func (a *Auditor) Mend(ctx context.Context, goodsID int64) error {
	v, err := a.shelf.View(ctx, goodsID)
	if errors.Is(err, seckill.ErrNotLoaded) || err == nil && (v.Gate != seckill.GateOpen || v.Pending == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := a.compare(ctx, v)
	if err != nil {
		return err
	}
	return errors.Join(a.settle(ctx, goodsID, f.written), a.refeed(ctx, v, f.absent))
}

func (a *Auditor) settle(ctx context.Context, goodsID int64, written map[string]Status) error {
	var sns []string
	for sn, status := range written {
		if status != Failed { // its move gives its units back
			sns = append(sns, sn)
		}
	}
	if len(sns) == 0 {
		return nil
	}
	n, err := a.shelf.Settle(ctx, goodsID, sns)
	a.log.WarnContext(ctx, "settled orders that were written and not settled", "goods_id", goodsID, "orders", n)
	return err
}

func (a *Auditor) refeed(ctx context.Context, v seckill.View, absent []Pending) error {
	var entries [][]byte
	for _, p := range absent {
		if due(v.Now.Sub(p.At)) {
			entries = append(entries, p.Entry)
		}
	}
	for len(entries) > 0 {
		n := min(relayChunk, len(entries))
		if err := a.relay.feed(ctx, v.GoodsID, entries[:n]); err != nil {
			return err
		}
		a.log.WarnContext(ctx, "published pending orders again", "goods_id", v.GoodsID, "orders", n)
		entries = entries[n:]
	}
	return nil
}

// due tells whether a reservation of an age is to be published again in this round of the audit: when its age has just
// passed a minute, two, four, and so on.
func due(age time.Duration) bool {
	for at := refeedAfter; at <= age; at *= 2 {
		if age-at <= auditEvery+auditEvery/2 {
			return true
		}
	}
	return false
}
