package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// readDeadline bounds one call to Redis that a batch of callers shares.
const readDeadline = 2 * time.Second

// Redis has the sales' current state.
type Redis interface {
	// View reads a sale; ErrNotLoaded if Redis has no state of it.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	// EndRest makes the workers serve a sale that may be at rest.
	EndRest(ctx context.Context, goodsID int64) error
}

// SaleStore reads the sales that buyers may see from MySQL.
type SaleStore interface {
	// Sale reads the row of a sale; ErrNoSuchGoods if there is none.
	Sale(ctx context.Context, goodsID int64) (seckill.Sale, error)
	// ExposedSales lists exposed sales, newest first, below a goods id (0: from the top).
	ExposedSales(ctx context.Context, below int64, limit int) ([]seckill.Sale, error)
	// Now returns the time of the database's server. It decides on the phase of a sale that Redis
	// lacks, because a node's clock may be wrong.
	Now(ctx context.Context) (time.Time, error)
}

// SaleReader reads the current state of sales. Concurrent callers of one sale share one call to
// Redis, which starts after the last of them called. It is safe for concurrent use.
type SaleReader struct {
	redis   Redis
	store   SaleStore
	views   *batcher.Batcher[int64, struct{}, sharedView]
	missing recentIDs // ids that name no exposed sale
	lost    recentIDs // ids of sales without an open gate, whose rest this node has ended
}

// sharedView is a view with the facts that the view cache needs.
type sharedView struct {
	seckill.View
	began   time.Time // this node's clock before the call to Redis
	callers int       // size of the batch that shared the call
}

// NewSaleReader returns a reader over Redis and MySQL.
func NewSaleReader(redis Redis, store SaleStore) *SaleReader {
	r := &SaleReader{redis: redis, store: store}
	r.views = batcher.New(reservation.MaxBatch, r.readBatch)
	return r
}

// readBatch reads once and returns every caller the same view.
func (r *SaleReader) readBatch(
	ctx context.Context, goodsID int64, callers []struct{},
) ([]sharedView, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	v := sharedView{began: time.Now(), callers: len(callers)}
	var err error
	if v.View, err = r.redis.View(ctx, goodsID); err != nil {
		return nil, err
	}
	return slices.Repeat([]sharedView{v}, len(callers)), nil
}

// Sale returns the current state of one sale. It returns NotFound for an unknown sale and for a
// draft, and remembers that for MissingTTL. It reads a sale that Redis no longer has from MySQL.
func (r *SaleReader) Sale(ctx context.Context, goodsID int64) (seckill.View, error) {
	v, err := r.read(ctx, goodsID)
	return v.View, err
}

// ExposedSale implements order.SaleReader: it is Sale, except that it ignores what this node
// remembers of missing sales.
func (r *SaleReader) ExposedSale(ctx context.Context, goodsID int64) (seckill.View, error) {
	v, err := r.readNow(ctx, goodsID)
	return v.View, err
}

// Exposed makes a sale visible at once that this node has exposed.
func (r *SaleReader) Exposed(goodsID int64) { r.missing.forget(goodsID) }

// read is readNow, unless this node remembers that the sale is missing.
func (r *SaleReader) read(ctx context.Context, goodsID int64) (sharedView, error) {
	if r.missing.has(goodsID) {
		return sharedView{}, seckill.NewNoSuchSale()
	}
	return r.readNow(ctx, goodsID)
}

// readNow returns a view from Redis, or from MySQL if Redis has none. It ends the rest of a sale
// whose gate is not open, because workers read a sale at rest only each minute.
func (r *SaleReader) readNow(ctx context.Context, goodsID int64) (sharedView, error) {
	v, err := r.views.Do(ctx, goodsID, struct{}{})
	if errors.Is(err, seckill.ErrNotLoaded) {
		v = sharedView{}
		if v.View, err = r.readStored(ctx, goodsID); err != nil {
			return sharedView{}, err
		}
	} else if err != nil {
		return sharedView{}, apierror.NewUnavailable("the sale can't be read", err)
	}
	if v.Gate != seckill.GateOpen && !v.Retired {
		r.endRest(ctx, goodsID)
	}
	return v, nil
}

// endRest ends the rest of a sale without an open gate, at most once in MissingTTL. No request
// waits for that: the list of sales at rest may be on another Redis master, which may not answer.
func (r *SaleReader) endRest(ctx context.Context, goodsID int64) {
	if r.lost.has(goodsID) {
		return
	}
	r.lost.put(goodsID, r.lost.currentGeneration())
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readDeadline)
		defer cancel()
		_ = r.redis.EndRest(ctx, goodsID) // the next request repeats it
	}()
}

// readStored reads a sale of which Redis has no state.
func (r *SaleReader) readStored(ctx context.Context, goodsID int64) (seckill.View, error) {
	generation := r.missing.currentGeneration()
	sale, err := r.store.Sale(ctx, goodsID)
	switch {
	case errors.Is(err, seckill.ErrNoSuchGoods), err == nil && sale.Status == seckill.Draft:
		r.missing.put(goodsID, generation)
		return seckill.View{}, seckill.NewNoSuchSale()
	case err != nil:
		return seckill.View{}, apierror.NewUnavailable("the sale can't be read", err)
	}
	return r.storedView(ctx, sale)
}

// storedView is the view of a sale of which Redis has no state.
func (r *SaleReader) storedView(ctx context.Context, sale seckill.Sale) (seckill.View, error) {
	now, err := r.store.Now(ctx)
	if err != nil {
		return seckill.View{}, apierror.NewUnavailable("the sale can't be read", err)
	}
	return seckill.View{
		Sale: sale, Gate: seckill.GateMissing, Now: now,
		Available: sale.Stock, Sold: sale.Total - sale.Stock,
	}, nil
}
