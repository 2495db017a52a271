package inventory

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/ttlcache"
)

// SaleService creates, exposes, changes, closes and lists sales for merchants, and reads their
// ledgers. It is safe for concurrent use.
type SaleService struct {
	Stores
	Opener  rebuild.Opener
	Ledgers reconcile.LedgerReader
	// Sums has MySQL's figures for RecentLedger; nil: it reads them each time.
	Sums *ttlcache.Cache[int64, seckill.Database]
	// CheckRate returns a BadRequest for a rate that no limiter accepts.
	CheckRate func(seckill.Rate) error
	// Exposed receives each sale that may be exposed now, before its merchant has the answer.
	Exposed func(goodsID int64)
}

// Create inserts a draft that belongs to the actor. The same idempotency key returns the first
// draft.
func (s *SaleService) Create(
	ctx context.Context, by seckill.Actor, n seckill.NewSale, key salechange.IdempotencyKey,
) (seckill.Sale, error) {
	if err := n.Validate(); err != nil {
		return seckill.Sale{}, err
	}
	if err := s.CheckRate(n.Rate); err != nil {
		return seckill.Sale{}, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return seckill.Sale{}, err
	}
	sale, err := s.Store.CreateSale(seckill.WithActor(ctx, by), n.Draft(by.ID, now), key)
	if err != nil {
		return seckill.Sale{}, apierror.OrUnavailable(err, "the sale could not be stored")
	}
	return sale, nil
}

// AuditTrail pages through the audit log, newest first, below an id ("": from the newest).
// Merchants see the entries of their own sales and webhooks and of their own actions, operators all
// entries. A sale of the filter must be one that the actor may manage.
func (s *SaleService) AuditTrail(
	ctx context.Context, by seckill.Actor, f salechange.AuditFilter, before string, limit int,
) ([]salechange.AuditEntry, error) {
	if f.GoodsID != 0 {
		if _, err := s.Get(ctx, by, f.GoodsID); err != nil {
			return nil, err
		}
	} else {
		f.MerchantID = by.ManagedMerchant()
	}
	entries, err := s.Store.AuditTrail(ctx, f, before, limit)
	return entries, apierror.OrUnavailable(err, "the changes can't be listed")
}

// Get reads one sale. It returns NotFound, or Forbidden for another merchant's sale.
func (s *SaleService) Get(
	ctx context.Context, by seckill.Actor, goodsID int64,
) (seckill.Sale, error) {
	sale, err := s.Store.Sale(ctx, goodsID)
	switch {
	case errors.Is(err, seckill.ErrNoSuchGoods):
		return seckill.Sale{}, seckill.NewNoSuchSale()
	case err != nil:
		return seckill.Sale{}, apierror.NewUnavailable("the sale can't be looked up", err)
	case !by.MayManage(sale.MerchantID):
		return seckill.Sale{}, newOthersSale()
	}
	return sale, nil
}

func newOthersSale() error {
	return apierror.New(apierror.Forbidden, "this is another merchant's sale")
}

// List pages through the actor's sales, newest first, below a goods id (0: from the newest).
// Operators see all sales.
func (s *SaleService) List(
	ctx context.Context, by seckill.Actor, below int64, limit int,
) ([]seckill.Sale, error) {
	sales, err := s.Store.SalesOf(ctx, by.ManagedMerchant(), below, limit)
	if err != nil {
		return nil, apierror.NewUnavailable("the sales can't be listed", err)
	}
	return sales, nil
}

// Expose loads a draft into Redis and shows it to buyers. A repeated call returns the exposed sale;
// a sale that is over is a Conflict.
func (s *SaleService) Expose(
	ctx context.Context, by seckill.Actor, goodsID int64,
) (seckill.Sale, error) {
	sale, err := s.Get(ctx, by, goodsID)
	if err != nil {
		return sale, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return seckill.Sale{}, err
	}
	if sale.Status == seckill.Closed || !now.Before(sale.EndAt) {
		return seckill.Sale{}, apierror.New(apierror.Conflict,
			"the sale is over and can't be exposed")
	}
	if sale.Status == seckill.Exposed {
		s.Exposed(goodsID) // by another node
		return sale, nil   // the rebuilder restores it if Redis lost it
	}
	opened, err := s.Opener.Expose(seckill.WithActor(ctx, by), goodsID)
	s.Exposed(goodsID) // also after an error: its outcome may be unknown
	if errors.Is(err, rebuild.ErrFenced) {
		return s.Get(ctx, by, goodsID) // a concurrent call exposed it first
	}
	if err != nil {
		return seckill.Sale{}, orUnavailable(err, "the sale could not be exposed")
	}
	s.Log.InfoContext(ctx, "sale exposed", "goods_id", goodsID, "units", opened.Total)
	return opened, nil
}

// Close ends a sale: reservations get the refusal Ended from now on. Queued orders are still
// written.
func (s *SaleService) Close(
	ctx context.Context, by seckill.Actor, goodsID int64,
) (seckill.Sale, error) {
	if _, err := s.Get(ctx, by, goodsID); err != nil {
		return seckill.Sale{}, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return seckill.Sale{}, err
	}
	sale, err := s.Store.CloseSale(seckill.WithActor(ctx, by), goodsID, now)
	if err != nil {
		return seckill.Sale{}, orUnavailable(err, "the sale could not be closed")
	}
	if err = s.syncSale(ctx, goodsID); err == nil {
		err = s.requireOpenMasterHas(ctx, goodsID)
	}
	if err != nil {
		return seckill.Sale{}, apierror.NewUnavailable(
			"the sale is closed in the database, but may be open to buyers still", err)
	}
	s.Log.InfoContext(ctx, "sale closed", "goods_id", goodsID)
	return sale, nil
}

// Now returns the time of the database's server, or this host's where it can't be read.
func (s *SaleService) Now(ctx context.Context) time.Time {
	now, err := s.Store.Now(ctx)
	if err != nil {
		return time.Now()
	}
	return now
}

// now returns the time of the database's server, which decides when a sale is over.
func (s *SaleService) now(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Now(ctx)
	if err != nil {
		err = apierror.NewUnavailable("the database's clock can't be read", err)
	}
	return now, err
}

// errOpenElsewhere means that a rebuild is under way, or that Redis has failed over.
var errOpenElsewhere = errors.New("another Redis may have the sale open")

// requireOpenMasterHas requires the master that answers to be the one on which MySQL has the sale
// open, and to have the sale's terms. Only where Redis can fail over another master may have the
// sale: one that was replaced may sell on by old terms until its gate ends.
func (s *SaleService) requireOpenMasterHas(ctx context.Context, goodsID int64) error {
	if s.Opener.GateLifetime == 0 {
		return nil
	}
	sale, err := s.Store.Sale(ctx, goodsID)
	if err != nil || sale.Status == seckill.Draft || sale.Retired {
		return err
	}
	v, err := s.Redis.View(ctx, goodsID)
	if err != nil {
		return err
	}
	openOn, err := s.Opener.Store.OpenedOn(ctx, goodsID)
	if err != nil {
		return err
	}
	loaded := v.Gate == seckill.GateOpen || v.Gate == seckill.GateExpired
	if !loaded || v.Lease != openOn || !v.SameTerms(sale) {
		return errOpenElsewhere
	}
	return nil
}

// Ledger accounts for every unit of a sale that the actor may manage.
func (s *SaleService) Ledger(
	ctx context.Context, by seckill.Actor, goodsID int64,
) (seckill.Ledger, error) {
	sale, err := s.Get(ctx, by, goodsID)
	if err != nil {
		return seckill.Ledger{}, err
	}
	return s.Ledgers.Ledger(ctx, sale)
}

// RecentLedger is Ledger for a console. MySQL's figures may be older than the rest, if the sale has
// very many orders.
func (s *SaleService) RecentLedger(
	ctx context.Context, by seckill.Actor, goodsID int64,
) (seckill.Ledger, error) {
	sale, err := s.Get(ctx, by, goodsID)
	if err != nil {
		return seckill.Ledger{}, err
	}
	ledgers := s.Ledgers
	ledgers.Sums = s.Sums
	return ledgers.Ledger(ctx, sale)
}
