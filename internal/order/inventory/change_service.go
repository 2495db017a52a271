package inventory

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// ChangeService changes sales for their merchants, also while they sell.
type ChangeService struct {
	owners   order.SaleGetter
	store    ChangeStore
	redis    ChangeRedis
	releaser *StockReleaser
	rates    func(seckill.Rate) error
	now      func() time.Time
	log      *slog.Logger
}

// NewChangeService makes a stockroom. rates judges whether a limiter can be made of a rate.
func NewChangeService(owners order.SaleGetter, store ChangeStore, shelf ChangeRedis, giver *StockReleaser, rates func(seckill.Rate) error, log *slog.Logger) *ChangeService {
	return &ChangeService{owners: owners, store: store, redis: shelf, releaser: giver, rates: rates, now: time.Now, log: log}
}

// Change changes a sale that the actor may manage, all of it or nothing. Title and price of an exposed sale, and
// everything of a closed one, are a Conflict; so is a cut of more than is unsold, with data.available. With a key, asked
// RetryTransaction: the first answer. A refusal changes nothing and is not remembered.
func (s *ChangeService) Change(ctx context.Context, by seckill.Actor, goodsID int64, c seckill.Change, once seckill.IdempotencyKey) (seckill.Sale, error) {
	if sale, known, err := s.answered(ctx, once); known || err != nil { // whatever has become of the sale since
		return sale, err
	}
	sale, err := s.owners.Get(ctx, by, goodsID)
	if err != nil {
		return sale, err
	}
	if after, err := c.Apply(sale); err == nil { // what is not so now is judged again in the transaction
		if err := s.rates(after.Rate); err != nil {
			return sale, err
		}
	}
	ctx = seckill.WithActor(ctx, by)
	var b BegunChange
	err = order.RetryTransaction(ctx, func() error { b, err = s.store.Change(ctx, goodsID, c, once, s.now()); return err })
	if e, ok := errors.AsType[*seckill.Error](err); ok && e.Data["available"] != nil {
		return sale, s.stockDeltaError(ctx, goodsID) // MySQL counts what is on its way as unsold, Redis does not
	}
	if err != nil {
		return sale, OrUnavailable(err, "the change's outcome is unknown")
	}
	ctx = context.WithoutCancel(ctx) // what is begun is finished, whether the caller waits or not
	ctx, cancel := context.WithTimeout(ctx, 2*order.RedisDeadline)
	defer cancel()
	if b.Cut != nil {
		if b.Sale, err = s.cut(ctx, *b.Cut); err != nil {
			return sale, err
		}
	}
	s.releaser.Release(ctx, b.Moves)
	s.log.InfoContext(ctx, "sale changed", "goods_id", goodsID, "stock_delta", c.StockDelta)
	return b.Sale, s.sync(ctx, goodsID)
}

// cut finishes a cut; Conflict where Redis did not have so much unsold.
func (s *ChangeService) cut(ctx context.Context, c StockCut) (sale seckill.Sale, err error) {
	err = order.RetryTransaction(ctx, func() error { c, sale, err = finishCut(ctx, s.store, s.redis, c, s.now()); return err })
	if err != nil {
		return sale, OrUnavailable(err, "the change is written down and its outcome not known yet")
	}
	if c.State == CutDone {
		return sale, nil
	}
	return sale, s.stockDeltaError(ctx, c.GoodsID)
}

// tooLarge is the refusal of a cut of more than is unsold.
func (s *ChangeService) stockDeltaError(ctx context.Context, goodsID int64) error {
	v, err := s.redis.View(ctx, goodsID)
	if err != nil {
		return seckill.NewUnavailable("the units unsold can't be counted", err)
	}
	return seckill.NewStockDeltaError(v.Available)
}

// tell brings to Redis what the scripts go by; what does not arrive now the steward brings. It reads the sale anew, so
// that of two changes that meet the later one is told.
func (s *ChangeService) sync(ctx context.Context, goodsID int64) error {
	sale, err := s.store.Sale(ctx, goodsID)
	if err == nil && sale.Status != seckill.Draft {
		err = s.redis.UpdateSale(ctx, sale)
	}
	if errors.Is(err, seckill.ErrNotLoaded) {
		return nil
	}
	if err != nil {
		s.log.WarnContext(ctx, "redis has not heard of a change yet", "goods_id", goodsID, "err", err)
	}
	return nil
}

// answered is the first answer to a key that came before. A key is its actor's own, so nobody hears another's.
func (s *ChangeService) answered(ctx context.Context, once seckill.IdempotencyKey) (seckill.Sale, bool, error) {
	if once.Key == "" {
		return seckill.Sale{}, false, nil
	}
	sale, known, err := s.store.Answered(ctx, once, s.now())
	return sale, known, OrUnavailable(err, "the Idempotency-Key can't be looked up")
}

// Delete removes a draft of the actor's; any other sale is a Conflict. With a key, asked again: it is gone.
func (s *ChangeService) Delete(ctx context.Context, by seckill.Actor, goodsID int64, once seckill.IdempotencyKey) error {
	if _, known, err := s.answered(ctx, once); known || err != nil {
		return err
	}
	if _, err := s.owners.Get(ctx, by, goodsID); err != nil {
		return err
	}
	ctx = seckill.WithActor(ctx, by)
	err := order.RetryTransaction(ctx, func() error { return s.store.DeleteDraft(ctx, goodsID, once, s.now()) })
	if errors.Is(err, seckill.ErrNoSuchGoods) {
		return seckill.NewError(seckill.NotFound, "there is no such sale")
	}
	return OrUnavailable(err, "the draft could not be deleted")
}

func OrUnavailable(err error, what string) error {
	if err == nil || seckill.ReasonOf(err) != "" {
		return err
	}
	return seckill.NewUnavailable(what, err)
}
