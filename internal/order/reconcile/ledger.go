package reconcile

import (
	"context"
	"errors"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/ttlcache"
)

// LedgerReader accounts for the units of sales. It changes nothing.
type LedgerReader struct {
	Store Store
	Redis Redis
	// Sums has the figures of MySQL for a caller that reads ledgers each second. They may be older
	// than the rest, if a sale has very many orders. nil: they are read for each ledger.
	Sums *ttlcache.Cache[int64, seckill.Database]
}

// Ledger accounts for every unit of a sale. It is Unavailable during a rebuild of the sale. MySQL
// alone is the source for drafts and for retired sales. Any other sale that Redis does not hold was
// lost. The queue may have orders that MySQL lacks until the rebuild, also after the sale's end.
func (r LedgerReader) Ledger(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error) {
	if sale.Status == seckill.Draft || sale.Retired {
		return r.fromMySQL(ctx, sale)
	}
	v, err := r.Redis.View(ctx, sale.GoodsID)
	if errors.Is(err, seckill.ErrNotLoaded) {
		v.Gate, err = seckill.GateMissing, nil
	}
	switch {
	case err != nil:
		return seckill.Ledger{}, apierror.NewUnavailable("cannot read the ledger", err)
	case v.Gate != seckill.GateOpen:
		gate := &seckill.GateError{State: v.Gate, Epoch: v.Epoch}
		return seckill.Ledger{}, seckill.NewRebuilding(gate)
	}
	return r.fromView(ctx, v)
}

// fromView completes the ledger of a sale whose view was just read.
func (r LedgerReader) fromView(ctx context.Context, v seckill.View) (seckill.Ledger, error) {
	db, err := r.database(ctx, v.GoodsID)
	if err != nil {
		return seckill.Ledger{}, apierror.NewUnavailable("cannot read the ledger in MySQL", err)
	}
	l := redisLedger(v)
	l.Database = db
	if l.Differences, err = r.compareAll(ctx, v, db); err != nil {
		return seckill.Ledger{}, apierror.NewUnavailable("cannot compare Redis with MySQL", err)
	}
	l.Balanced = l.AddsUp() && !l.Differences.Any()
	return l, nil
}

// database reads MySQL's figures of a sale. Figures from Sums raise no false alarm: compareTotals
// reads them again before it reports a difference.
func (r LedgerReader) database(ctx context.Context, goodsID int64) (seckill.Database, error) {
	read := func(ctx context.Context) (seckill.Database, error) {
		return r.Store.Database(ctx, goodsID)
	}
	if r.Sums == nil {
		return read(ctx)
	}
	return r.Sums.Get(ctx, goodsID, read)
}

// redisLedger is the part of a ledger that a view holds.
func redisLedger(v seckill.View) seckill.Ledger {
	return seckill.Ledger{
		Total: v.Total, Available: v.Available, Pending: v.Pending, Sold: v.Sold, Epoch: v.Epoch,
	}
}

// fromMySQL makes the ledger of a sale of which Redis has nothing that MySQL lacks.
func (r LedgerReader) fromMySQL(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error) {
	db, err := r.database(ctx, sale.GoodsID)
	if err != nil {
		return seckill.Ledger{}, apierror.NewUnavailable("cannot read the ledger in MySQL", err)
	}
	l := seckill.Ledger{
		Total: sale.Total, Available: db.Stock, Sold: db.Active, Epoch: sale.Epoch, Database: db,
	}
	l.Balanced = l.AddsUp()
	return l, nil
}
