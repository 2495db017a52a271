package catalog

import (
	"context"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Catalog answers buyers: what is on sale, may I come in, and the random path. In a rush it answers from what was seen a
// ViewTTL ago; a path is always given, or refused, by Redis.
type Catalog struct {
	reader *SaleReader
	redis  PathStore
	store  SaleStore
	cache  viewCache
	paths  *batcher.Batcher[pathKey, reservation.PathGrant, time.Time]
}

// NewCatalog makes the shop.
func NewCatalog(front *SaleReader, shelf PathStore, catalog SaleStore) *Catalog {
	s := &Catalog{reader: front, redis: shelf, store: catalog}
	s.paths = batcher.New(reservation.MaxBatch, s.pathBatch)
	return s
}

// Sale is one sale as everybody sees it; see Front.Sale. While many look it may be as old as Moment.
func (s *Catalog) Sale(ctx context.Context, goodsID int64) (seckill.View, error) {
	l, err := s.read(ctx, goodsID)
	return l.View, err
}

// sharedView is Front's, or one of a moment ago.
func (s *Catalog) read(ctx context.Context, goodsID int64) (sharedView, error) {
	if l, fresh := s.cache.get(goodsID, true); fresh {
		return l, nil
	}
	l, err := s.reader.read(ctx, goodsID)
	if err == nil {
		s.cache.put(l)
	}
	return l, err
}

// Refused is Admit's refusal where it is known without asking anybody, or nil where it is not.
func (s *Catalog) KnownRefusal(goodsID int64) error {
	l, fresh := s.cache.get(goodsID, false)
	if !fresh {
		return nil
	}
	return l.CheckSelling(l.Now, l.Available)
}

// Admit gives a buyer the view of a sale, or the refusal where the sale takes nobody now.
func (s *Catalog) Admit(ctx context.Context, goodsID int64) (seckill.View, error) {
	l, err := s.read(ctx, goodsID)
	v := l.View
	if err != nil {
		return v, err
	}
	if v.Gate != seckill.GateOpen && v.PhaseAt(v.Now, v.Available) != seckill.PhaseEnded {
		return v, seckill.NewRebuilding(&seckill.GateError{State: v.Gate, Epoch: v.Epoch})
	}
	return v, v.CheckSelling(v.Now, v.Available)
}

// SaleService lists exposed sales, newest first, below a goods id (0: from the top). A sale whose Redis is away while another's answers is
// shown as MySQL knows it: it must not take the list from everybody.
func (s *Catalog) Sales(ctx context.Context, below int64, limit int) ([]seckill.View, error) {
	sales, err := s.store.ExposedSales(ctx, below, limit)
	if err != nil {
		return nil, seckill.NewUnavailable("the sales can't be listed", err)
	}
	views, troubles := make([]seckill.View, len(sales)), make([]error, len(sales))
	var looks sync.WaitGroup
	for i, sale := range sales {
		looks.Go(func() { views[i], troubles[i] = s.Sale(ctx, sale.GoodsID) })
	}
	looks.Wait()
	return views, fillFromStore(views, troubles, sales)
}

// fillFromStore puts what MySQL says in the place of views that could not be had, where others could.
func fillFromStore(views []seckill.View, troubles []error, sales []seckill.Sale) error {
	missing := 0
	for i, err := range troubles {
		if err == nil {
			continue
		}
		if missing++; missing == len(sales) || seckill.ReasonOf(err) != seckill.Unavailable {
			return err
		}
		views[i] = storedView(sales[i])
	}
	return nil
}
