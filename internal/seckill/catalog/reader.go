package catalog

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// readDeadline bounds one trip to Redis for a group of buyers.
const readDeadline = 2 * time.Second

// ViewStore reads sales out of Redis.
type ViewStore interface {
	// View reads a sale; ErrNotLoaded where Redis has nothing of it.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
}

// SaleReader tells how sales stand now. Those who ask for one at the same time share one look into
// Redis, which is not older than their question. It is safe for concurrent use.
type SaleReader struct {
	redis ViewStore
	store SaleStore
	views *batcher.Batcher[int64, struct{}, sharedView]
}

// sharedView is a view and how it came about.
type sharedView struct {
	seckill.View
	began   time.Time // by this node's clock, before Redis was asked
	callers int       // how many shared it
}

// NewSaleReader makes a front over Redis and MySQL.
func NewSaleReader(viewer ViewStore, catalog SaleStore) *SaleReader {
	f := &SaleReader{redis: viewer, store: catalog}
	f.views = batcher.New(reservation.MaxBatch, f.readBatch)
	return f
}

// trip asks once and gives everybody the same answer.
func (f *SaleReader) readBatch(ctx context.Context, goodsID int64, askers []struct{}) ([]sharedView, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	l := sharedView{began: time.Now(), callers: len(askers)}
	var err error
	if l.View, err = f.redis.View(ctx, goodsID); err != nil {
		return nil, err
	}
	looks := make([]sharedView, len(askers))
	for i := range looks {
		looks[i] = l
	}
	return looks, nil
}

// Sale is one sale as it stands: NotFound where there is none or it is a draft. What is over and Redis has forgotten is read from MySQL.
func (f *SaleReader) Sale(ctx context.Context, goodsID int64) (seckill.View, error) {
	l, err := f.read(ctx, goodsID)
	return l.View, err
}

func (f *SaleReader) read(ctx context.Context, goodsID int64) (sharedView, error) {
	l, err := f.views.Do(ctx, goodsID, struct{}{})
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, seckill.ErrNotLoaded):
		v, err := f.readStored(ctx, goodsID)
		return sharedView{View: v}, err
	default:
		return sharedView{}, seckill.NewUnavailable("the sale can't be looked at", err)
	}
}

// unloaded tells apart why Redis has nothing of a goods.
func (f *SaleReader) readStored(ctx context.Context, goodsID int64) (seckill.View, error) {
	sale, err := f.store.Sale(ctx, goodsID)
	switch {
	case errors.Is(err, seckill.ErrNoSuchGoods), err == nil && sale.Status == seckill.Draft:
		return seckill.View{}, seckill.NewNoSuchSale()
	case err != nil:
		return seckill.View{}, seckill.NewUnavailable("the sale can't be looked up", err)
	}
	return storedView(sale), nil
}

// storedView is a sale of which Redis has nothing.
func storedView(sale seckill.Sale) seckill.View {
	return seckill.View{Sale: sale, Gate: seckill.GateMissing, Available: sale.Stock, Sold: sale.Total - sale.Stock, Now: time.Now().UTC()}
}

// SaleStore is what MySQL knows of the sales that buyers may see.
type SaleStore interface {
	// Sale reads the row of a sale; ErrNoSuchGoods where there is none.
	Sale(ctx context.Context, goodsID int64) (seckill.Sale, error)
	// ExposedSales lists exposed sales, newest first, below a goods id (0: from the top).
	ExposedSales(ctx context.Context, below int64, limit int) ([]seckill.Sale, error)
}
