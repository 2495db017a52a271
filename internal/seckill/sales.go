package seckill

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Truth is a sale in MySQL as its merchant's calls need it.
type Truth interface {
	Catalog
	// CreateSale writes a sale, or finds the one that was written under the same key before.
	CreateSale(ctx context.Context, sale Sale, once Once) (Sale, error)
	AuditLog
	// CloseSale closes an exposed sale, and is content with a closed one; a draft is a Conflict.
	CloseSale(ctx context.Context, goodsID int64, now time.Time) (Sale, error)
	// SalesOf lists a merchant's sales (0: everybody's), newest first, below a goods id (0: from the top).
	SalesOf(ctx context.Context, merchantID, below int64, limit int) ([]Sale, error)
}

// Amender is a sale in Redis as its merchant's calls need it.
type Amender interface {
	// Amend brings status, window, limit and rate to Redis; ErrNotLoaded where it does not have the sale's epoch.
	Amend(ctx context.Context, sale Sale) error
}

// Auditor judges a ledger by order number.
type Auditor interface {
	// Ledger reads both sides of a sale. The view is nil where the sale is over, drained and gone from Redis.
	Ledger(ctx context.Context, sale Sale) (Ledger, error)
}

// Sales answers merchants: put up, expose, close, look, account.
type Sales struct {
	truth   Truth
	shelf   Amender
	opener  *Opener
	auditor Auditor
	rates   func(Rate) error
	log     *slog.Logger
	now     func() time.Time
}

// NewSales makes the merchants' service. rates judges whether a limiter can be made of a rate.
func NewSales(truth Truth, shelf Amender, opener *Opener, auditor Auditor, rates func(Rate) error, log *slog.Logger) *Sales {
	return &Sales{truth: truth, shelf: shelf, opener: opener, auditor: auditor, rates: rates, log: log, now: time.Now}
}

// Create puts up a draft of the actor's own; again with the same key: the first one.
func (s *Sales) Create(ctx context.Context, by Actor, n NewSale, once Once) (Sale, error) {
	if err := n.Validate(); err != nil {
		return Sale{}, err
	}
	if err := s.rates(n.Rate); err != nil {
		return Sale{}, err
	}
	sale := n.Draft(by.ID, s.now())
	sale, err := s.truth.CreateSale(WithActor(ctx, by), sale, once)
	if err != nil {
		return Sale{}, settledOr(err, "the sale could not be stored")
	}
	return sale, nil
}

// Audit pages through the changes of a sale that the actor may manage, newest first, below an id ("": from the top).
func (s *Sales) Audit(ctx context.Context, by Actor, goodsID int64, before string, limit int) ([]AuditEntry, error) {
	if _, err := s.Get(ctx, by, goodsID); err != nil {
		return nil, err
	}
	entries, err := s.truth.AuditOf(ctx, goodsID, before, limit)
	return entries, settledOr(err, "the changes can't be listed")
}

// Get reads one sale: NotFound, or Forbidden where it is somebody else's.
func (s *Sales) Get(ctx context.Context, by Actor, goodsID int64) (Sale, error) {
	sale, err := s.truth.Sale(ctx, goodsID)
	switch {
	case errors.Is(err, ErrNoSuchGoods):
		return Sale{}, noSuchSale()
	case err != nil:
		return Sale{}, Down("the sale can't be looked up", err)
	case !by.MayManage(sale.MerchantID):
		return Sale{}, Refuse(Forbidden, "this is another merchant's sale")
	}
	return sale, nil
}

// List pages through the actor's sales, newest first, below a goods id (0: from the top). Operators see all.
func (s *Sales) List(ctx context.Context, by Actor, below int64, limit int) ([]Sale, error) {
	merchant := by.ID
	if by.Role == Operator {
		merchant = 0
	}
	sales, err := s.truth.SalesOf(ctx, merchant, below, limit)
	if err != nil {
		return nil, Down("the sales can't be listed", err)
	}
	return sales, nil
}

// Expose builds the sale in Redis and shows it. Again is without harm: what is exposed stays as it is.
func (s *Sales) Expose(ctx context.Context, by Actor, goodsID int64) (Sale, error) {
	sale, err := s.Get(ctx, by, goodsID)
	if err != nil {
		return sale, err
	}
	if sale.Status == Closed || !s.now().Before(sale.EndAt) {
		return Sale{}, Refuse(Conflict, "the sale is over and can't be exposed")
	}
	if sale.Status == Exposed {
		return sale, nil // where Redis has lost it, the rebuilder sees that and needs no asking
	}
	opened, err := s.opener.OpenFirst(WithActor(ctx, by), goodsID)
	if errors.Is(err, ErrFenced) {
		return s.Get(ctx, by, goodsID) // somebody else has just exposed it
	}
	if err != nil {
		return Sale{}, settledOr(err, "the sale could not be exposed")
	}
	s.log.InfoContext(ctx, "sale exposed", "goods_id", goodsID, "units", opened.Total)
	return opened, nil
}

// Close stops a sale: reservations answer Ended from now on, what is queued is still written.
func (s *Sales) Close(ctx context.Context, by Actor, goodsID int64) (Sale, error) {
	if _, err := s.Get(ctx, by, goodsID); err != nil {
		return Sale{}, err
	}
	sale, err := s.truth.CloseSale(WithActor(ctx, by), goodsID, s.now())
	if err != nil {
		return Sale{}, settledOr(err, "the sale could not be closed")
	}
	if err := s.tell(ctx, goodsID); err != nil {
		return Sale{}, Down("the sale is closed in the database, but may be open to buyers still", err)
	}
	s.log.InfoContext(ctx, "sale closed", "goods_id", goodsID)
	return sale, nil
}

// tell brings to Redis what MySQL has of a sale.
func (s *Sales) tell(ctx context.Context, goodsID int64) error {
	sale, err := s.truth.Sale(ctx, goodsID)
	if err != nil {
		return err
	}
	if err := s.shelf.Amend(ctx, sale); !errors.Is(err, ErrNotLoaded) {
		return err
	}
	return nil
}

// Ledger accounts for a sale.
func (s *Sales) Ledger(ctx context.Context, by Actor, goodsID int64) (Ledger, error) {
	sale, err := s.Get(ctx, by, goodsID)
	if err != nil {
		return Ledger{}, err
	}
	return s.auditor.Ledger(ctx, sale)
}

// settledOr leaves a refusal as it is and makes anything else an Unavailable.
func settledOr(err error, what string) error {
	if err == nil || ReasonOf(err) != "" {
		return err
	}
	return Down(what, err)
}
