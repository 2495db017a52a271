package inventory

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
)

// ManagedSaleStore is a sale in MySQL as its merchant's calls need it.
type ManagedSaleStore interface {
	catalog.SaleStore
	// CreateSale writes a sale, or finds the one that was written under the same key before.
	CreateSale(ctx context.Context, sale seckill.Sale, once seckill.IdempotencyKey) (seckill.Sale, error)
	seckill.AuditLog
	// CloseSale closes an exposed sale, and is content with a closed one; a draft is a Conflict.
	CloseSale(ctx context.Context, goodsID int64, now time.Time) (seckill.Sale, error)
	// SalesOf lists a merchant's sales (0: everybody's), newest first, below a goods id (0: from the top).
	SalesOf(ctx context.Context, merchantID, below int64, limit int) ([]seckill.Sale, error)
}

// SaleUpdater is a sale in Redis as its merchant's calls need it.
type SaleUpdater interface {
	// Amend brings status, window, limit and rate to Redis; ErrNotLoaded where it does not have the sale's epoch.
	UpdateSale(ctx context.Context, sale seckill.Sale) error
}

// LedgerReader judges a ledger by order number.
type LedgerReader interface {
	// Ledger reads both sides of a sale. The view is nil where the sale is over, drained and gone from Redis.
	Ledger(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error)
}

// SaleService answers merchants: put up, expose, close, look, account.
type SaleService struct {
	store   ManagedSaleStore
	redis   SaleUpdater
	opener  *rebuild.Opener
	auditor LedgerReader
	rates   func(seckill.Rate) error
	log     *slog.Logger
	now     func() time.Time
}

// NewSaleService makes the merchants' service. rates judges whether a limiter can be made of a rate.
func NewSaleService(truth ManagedSaleStore, shelf SaleUpdater, opener *rebuild.Opener, auditor LedgerReader, rates func(seckill.Rate) error, log *slog.Logger) *SaleService {
	return &SaleService{store: truth, redis: shelf, opener: opener, auditor: auditor, rates: rates, log: log, now: time.Now}
}

// Create puts up a draft of the actor's own; again with the same key: the first one.
func (s *SaleService) Create(ctx context.Context, by seckill.Actor, n seckill.NewSale, once seckill.IdempotencyKey) (seckill.Sale, error) {
	if err := n.Validate(); err != nil {
		return seckill.Sale{}, err
	}
	if err := s.rates(n.Rate); err != nil {
		return seckill.Sale{}, err
	}
	sale := n.Draft(by.ID, s.now())
	sale, err := s.store.CreateSale(seckill.WithActor(ctx, by), sale, once)
	if err != nil {
		return seckill.Sale{}, seckill.OrUnavailable(err, "the sale could not be stored")
	}
	return sale, nil
}

// Audit pages through the changes of a sale that the actor may manage, newest first, below an id ("": from the top).
func (s *SaleService) Audit(ctx context.Context, by seckill.Actor, goodsID int64, before string, limit int) ([]seckill.AuditEntry, error) {
	if _, err := s.Get(ctx, by, goodsID); err != nil {
		return nil, err
	}
	entries, err := s.store.AuditOf(ctx, goodsID, before, limit)
	return entries, seckill.OrUnavailable(err, "the changes can't be listed")
}

// Get reads one sale: NotFound, or Forbidden where it is somebody else's.
func (s *SaleService) Get(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error) {
	sale, err := s.store.Sale(ctx, goodsID)
	switch {
	case errors.Is(err, seckill.ErrNoSuchGoods):
		return seckill.Sale{}, seckill.NewNoSuchSale()
	case err != nil:
		return seckill.Sale{}, seckill.NewUnavailable("the sale can't be looked up", err)
	case !by.MayManage(sale.MerchantID):
		return seckill.Sale{}, seckill.NewError(seckill.Forbidden, "this is another merchant's sale")
	}
	return sale, nil
}

// List pages through the actor's sales, newest first, below a goods id (0: from the top). Operators see all.
func (s *SaleService) List(ctx context.Context, by seckill.Actor, below int64, limit int) ([]seckill.Sale, error) {
	merchant := by.ID
	if by.Role == seckill.Operator {
		merchant = 0
	}
	sales, err := s.store.SalesOf(ctx, merchant, below, limit)
	if err != nil {
		return nil, seckill.NewUnavailable("the sales can't be listed", err)
	}
	return sales, nil
}

// Expose builds the sale in Redis and shows it. Again is without harm: what is exposed stays as it is.
func (s *SaleService) Expose(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error) {
	sale, err := s.Get(ctx, by, goodsID)
	if err != nil {
		return sale, err
	}
	if sale.Status == seckill.Closed || !s.now().Before(sale.EndAt) {
		return seckill.Sale{}, seckill.NewError(seckill.Conflict, "the sale is over and can't be exposed")
	}
	if sale.Status == seckill.Exposed {
		return sale, nil // where Redis has lost it, the rebuilder sees that and needs no asking
	}
	opened, err := s.opener.OpenFirst(seckill.WithActor(ctx, by), goodsID)
	if errors.Is(err, seckill.ErrFenced) {
		return s.Get(ctx, by, goodsID) // somebody else has just exposed it
	}
	if err != nil {
		return seckill.Sale{}, seckill.OrUnavailable(err, "the sale could not be exposed")
	}
	s.log.InfoContext(ctx, "sale exposed", "goods_id", goodsID, "units", opened.Total)
	return opened, nil
}

// Close stops a sale: reservations answer Ended from now on, what is queued is still written.
func (s *SaleService) Close(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error) {
	if _, err := s.Get(ctx, by, goodsID); err != nil {
		return seckill.Sale{}, err
	}
	sale, err := s.store.CloseSale(seckill.WithActor(ctx, by), goodsID, s.now())
	if err != nil {
		return seckill.Sale{}, seckill.OrUnavailable(err, "the sale could not be closed")
	}
	if err := s.sync(ctx, goodsID); err != nil {
		return seckill.Sale{}, seckill.NewUnavailable("the sale is closed in the database, but may be open to buyers still", err)
	}
	s.log.InfoContext(ctx, "sale closed", "goods_id", goodsID)
	return sale, nil
}

// tell brings to Redis what MySQL has of a sale.
func (s *SaleService) sync(ctx context.Context, goodsID int64) error {
	sale, err := s.store.Sale(ctx, goodsID)
	if err != nil {
		return err
	}
	if err := s.redis.UpdateSale(ctx, sale); !errors.Is(err, seckill.ErrNotLoaded) {
		return err
	}
	return nil
}

// Ledger accounts for a sale.
func (s *SaleService) Ledger(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Ledger, error) {
	sale, err := s.Get(ctx, by, goodsID)
	if err != nil {
		return seckill.Ledger{}, err
	}
	return s.auditor.Ledger(ctx, sale)
}
