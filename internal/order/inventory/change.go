package inventory

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// BegunChange is the result of a change's first transaction.
type BegunChange struct {
	// Sale is the changed sale; for a repeated key, as the first answer had it.
	Sale  seckill.Sale
	Moves []order.StockMove // of a raise, to be applied to Redis
	Cut   *StockCut         // a cut to be finished; nothing has changed yet
}

// Change changes a sale that the actor may manage, completely or not at all. Title and price of an
// exposed sale, and any field of a closed one, are a Conflict. A cut of more units than are unsold
// is a Conflict with data.available. A repeated idempotency key returns the first answer; a refusal
// is not stored under the key.
func (s *SaleService) Change(
	ctx context.Context, by seckill.Actor, goodsID int64, c salechange.Change,
	key salechange.IdempotencyKey,
) (seckill.Sale, error) {
	if sale, known, err := s.answered(ctx, by, key); known || err != nil {
		if known {
			err = s.reachBuyers(ctx, goodsID, c)
		}
		return sale, err
	}
	sale, err := s.Get(ctx, by, goodsID)
	if err != nil {
		return sale, err
	}
	if after, err := c.Apply(sale); err == nil { // the transaction applies it again
		if err := s.CheckRate(after.Rate); err != nil {
			return sale, err
		}
	}
	if c.StockDelta != 0 {
		key = countedOnce(by, key)
	}
	ctx = seckill.WithActor(ctx, by)
	var b BegunChange
	err = order.RetryTransaction(ctx, func() error {
		now, err := s.Store.Now(ctx)
		if err != nil {
			return err
		}
		b, err = s.Store.Change(ctx, goodsID, c, key, now)
		return err
	})
	if isStockDeltaError(err) {
		// MySQL counts pending units as unsold; only Redis has the number of available ones.
		return sale, s.stockDeltaError(ctx, goodsID)
	}
	if err != nil {
		return sale, orUnavailable(err, "the change's outcome is unknown")
	}
	// The change has begun, so the service finishes it even if the caller stops waiting.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*order.RedisDeadline)
	defer cancel()
	if b.Cut != nil {
		if b.Sale, err = s.cut(ctx, *b.Cut); err != nil {
			return sale, err
		}
	}
	s.Release(ctx, b.Moves)
	s.Log.InfoContext(ctx, "sale changed", "goods_id", goodsID, "stock_delta", c.StockDelta)
	return b.Sale, s.reachBuyers(ctx, goodsID, c)
}

// reachBuyers brings a change into Redis. It returns an error if buyers may still have the old
// period, limit or rate; the change syncer then repeats the step. A change of the stock alone does
// not go this way. Redis refuses every load that lacks a change. So a merchant who changed the
// stock often would keep a sale shut that takes long to load.
func (s *SaleService) reachBuyers(ctx context.Context, goodsID int64, c salechange.Change) error {
	if !c.ChangesTerms() {
		return nil
	}
	err := s.syncSale(ctx, goodsID)
	if errors.Is(err, seckill.ErrNoSuchGoods) {
		return nil // a repeated change of a draft that was deleted since
	}
	if err == nil {
		err = s.requireOpenMasterHas(ctx, goodsID)
	}
	if err != nil {
		return apierror.NewUnavailable("the change is stored, but buyers may have the old period, "+
			"limit or rate still; ask again with the same Idempotency-Key", err)
	}
	return nil
}

// cut finishes a stock cut. It returns a Conflict if Redis had fewer units unsold.
func (s *SaleService) cut(ctx context.Context, c StockCut) (sale seckill.Sale, err error) {
	err = order.RetryTransaction(ctx, func() error {
		c, sale, err = s.finishCut(ctx, c)
		return err
	})
	if err != nil {
		return sale, apierror.OrUnavailable(err,
			"the change is stored and its outcome is not known yet")
	}
	if c.State == CutDone {
		return sale, nil
	}
	// The sale may have changed since the cut began: a closed one refuses the change for that.
	_, err = c.Wanted.Apply(sale)
	if err != nil && !isStockDeltaError(err) {
		return sale, err
	}
	return sale, s.stockDeltaError(ctx, c.GoodsID)
}

func isStockDeltaError(err error) bool {
	e, ok := errors.AsType[*apierror.Error](err)
	return ok && e.Detail.Name == "available"
}

// stockDeltaError is the Conflict of a cut of more units than are available.
func (s *SaleService) stockDeltaError(ctx context.Context, goodsID int64) error {
	v, err := s.Redis.View(ctx, goodsID)
	if err != nil {
		return apierror.NewUnavailable("the unsold units can't be counted", err)
	}
	return salechange.NewStockDeltaError(v.Available)
}

// countedOnce returns the key of a request, or a new one without any. The service repeats a
// transaction if the answer to its commit is lost, and the key makes both count once.
func countedOnce(by seckill.Actor, key salechange.IdempotencyKey) salechange.IdempotencyKey {
	if key.Key == "" {
		key = salechange.IdempotencyKey{ActorID: by.ID, Key: uuid.NewString()}
	}
	return key
}

// answered returns the first answer to a repeated key. A key belongs to its actor, so that an actor
// cannot read another's answer. An operator may have the id of a merchant, who must not read the
// answer about another merchant's sale.
func (s *SaleService) answered(
	ctx context.Context, by seckill.Actor, key salechange.IdempotencyKey,
) (seckill.Sale, bool, error) {
	if key.Key == "" {
		return seckill.Sale{}, false, nil
	}
	now, err := s.now(ctx)
	if err != nil {
		return seckill.Sale{}, false, err
	}
	sale, known, err := s.Store.Answered(ctx, key, now)
	if known && !by.MayManage(sale.MerchantID) {
		return seckill.Sale{}, false, newOthersSale()
	}
	return sale, known, apierror.OrUnavailable(err, "the Idempotency-Key can't be looked up")
}

// Delete removes a draft of the actor; any other sale is a Conflict. A repeated key succeeds again.
func (s *SaleService) Delete(
	ctx context.Context, by seckill.Actor, goodsID int64, key salechange.IdempotencyKey,
) error {
	if _, known, err := s.answered(ctx, by, key); known || err != nil {
		return err
	}
	if _, err := s.Get(ctx, by, goodsID); err != nil {
		return err
	}
	ctx, key = seckill.WithActor(ctx, by), countedOnce(by, key)
	err := order.RetryTransaction(ctx, func() error {
		now, err := s.Store.Now(ctx)
		if err != nil {
			return err
		}
		return s.Store.DeleteDraft(ctx, goodsID, key, now)
	})
	return orUnavailable(err, "the draft could not be deleted")
}

// orUnavailable is apierror.OrUnavailable, for a draft that may be deleted after Get has found it.
func orUnavailable(err error, what string) error {
	if errors.Is(err, seckill.ErrNoSuchGoods) {
		return seckill.NewNoSuchSale()
	}
	return apierror.OrUnavailable(err, what)
}

// syncSale writes a sale's fields from MySQL to Redis. The row's version orders concurrent changes.
// It skips drafts and retired sales, and a rebuild loads what Redis lost.
func (s Stores) syncSale(ctx context.Context, goodsID int64) error {
	sale, err := s.Store.Sale(ctx, goodsID)
	if err != nil || sale.Status == seckill.Draft || sale.Retired {
		return err
	}
	if err := s.Redis.UpdateSale(ctx, sale); !errors.Is(err, seckill.ErrNotLoaded) {
		return err
	}
	return nil
}
