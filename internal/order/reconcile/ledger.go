package reconcile

import (
	"context"
	"errors"

	"flashsale.dev/seckill/internal/seckill"
)

// LedgerReader accounts for the units of sales. It changes nothing.
type LedgerReader struct {
	Store Store
	Redis Redis
}

// Ledger accounts for every unit of a sale. It is Unavailable during a rebuild of the sale. MySQL
// alone is the source for drafts and for retired sales.
func (r LedgerReader) Ledger(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error) {
	v, err := r.Redis.View(ctx, sale.GoodsID)
	switch {
	case errors.Is(err, seckill.ErrNotLoaded):
		return r.fromMySQL(ctx, sale)
	case err != nil:
		return seckill.Ledger{}, seckill.NewUnavailable("cannot read the ledger", err)
	case v.Gate != seckill.GateOpen:
		gate := &seckill.GateError{State: v.Gate, Epoch: v.Epoch}
		return seckill.Ledger{}, seckill.NewRebuilding(gate)
	}
	return r.fromView(ctx, v)
}

// fromView completes the ledger of a sale whose view was just read.
func (r LedgerReader) fromView(ctx context.Context, v seckill.View) (seckill.Ledger, error) {
	db, err := r.Store.Database(ctx, v.GoodsID)
	if err != nil {
		return seckill.Ledger{}, seckill.NewUnavailable("cannot read the ledger in MySQL", err)
	}
	l := redisLedger(v)
	l.Database = db
	if l.Differences, err = r.compareAll(ctx, v, db); err != nil {
		return seckill.Ledger{}, seckill.NewUnavailable("cannot compare Redis with MySQL", err)
	}
	l.Balanced = l.AddsUp() && !l.Differences.Any()
	return l, nil
}

// redisLedger is the part of a ledger that a view holds.
func redisLedger(v seckill.View) seckill.Ledger {
	return seckill.Ledger{
		Total: v.Total, Available: v.Available, Pending: v.Pending, Sold: v.Sold, Epoch: v.Epoch,
	}
}

// fromMySQL makes the ledger of a sale that Redis does not hold. Unless it is retired, Redis lost
// it, and the queue may have orders that MySQL lacks until the rebuild, also after the sale's end.
func (r LedgerReader) fromMySQL(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error) {
	if sale.Status != seckill.Draft && !sale.Retired {
		gate := &seckill.GateError{State: seckill.GateMissing}
		return seckill.Ledger{}, seckill.NewRebuilding(gate)
	}
	db, err := r.Store.Database(ctx, sale.GoodsID)
	if err != nil {
		return seckill.Ledger{}, seckill.NewUnavailable("cannot read the ledger in MySQL", err)
	}
	l := seckill.Ledger{
		Total: sale.Total, Available: db.Stock, Sold: db.Active, Epoch: sale.Epoch, Database: db,
	}
	l.Balanced = l.AddsUp()
	return l, nil
}
