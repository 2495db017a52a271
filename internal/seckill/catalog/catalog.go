package catalog

import (
	"context"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/ttlcache"
)

// Catalog serves buyers: the exposed sales, admission to a sale, and the random path. In a rush it
// answers from a view that is at most ViewTTL old. A Catalog is safe for concurrent use.
type Catalog struct {
	reader  *SaleReader
	keys    *ordersn.Keys
	cache   viewCache
	details *ttlcache.Cache[int64, seckill.Details]
}

const (
	// detailsTTL is the age at which a sale's details are read again from MySQL.
	detailsTTL = 5 * time.Second
	// maxDetails bounds the sales whose details a node keeps. Each has a few KB at most.
	maxDetails = 5000
)

// NewCatalog returns a catalog of the sales that reader serves. keys sign the paths.
func NewCatalog(reader *SaleReader, keys *ordersn.Keys) *Catalog {
	return &Catalog{reader: reader, keys: keys, details: ttlcache.New[int64, seckill.Details](
		ttlcache.Options{
			TTL: detailsTTL, MaxEntries: maxDetails, LoadTimeout: readDeadline, Now: time.Now,
		},
	)}
}

// Sale returns one sale for buyers, with the errors of SaleReader.Sale. The view may be ViewTTL old
// while several callers read the same sale.
func (c *Catalog) Sale(ctx context.Context, goodsID int64) (seckill.View, error) {
	v, err := c.read(ctx, goodsID)
	return v.View, err
}

// SaleWithDetails returns one sale as Sale does, with its details. Without MySQL these may be
// missing, because buyers need none of them.
func (c *Catalog) SaleWithDetails(ctx context.Context, goodsID int64) (seckill.View, error) {
	v, err := c.Sale(ctx, goodsID)
	if err != nil {
		return v, err
	}
	v.Details, _ = c.details.Get(ctx, goodsID, func(ctx context.Context) (seckill.Details, error) {
		sale, err := c.reader.store.Sale(ctx, goodsID)
		return sale.Details, err
	})
	return v, nil
}

// read returns the cached view or reads a new one.
func (c *Catalog) read(ctx context.Context, goodsID int64) (sharedView, error) {
	if v, fresh := c.cache.get(goodsID, true); fresh {
		return v, nil
	}
	v, err := c.reader.read(ctx, goodsID)
	if err == nil {
		c.cache.put(v)
	}
	return v, err
}

// Known returns the cached view of an open sale; false if there is no fresh one. It never calls
// Redis.
func (c *Catalog) Known(goodsID int64) (seckill.View, bool) {
	v, fresh := c.cache.get(goodsID, false)
	return v.View, fresh
}

// knownError returns the error by which the cached view refuses buyers; nil if the sale sells, or
// if no view is cached.
func (c *Catalog) knownError(goodsID int64) error {
	v, known := c.Known(goodsID)
	if !known {
		return nil
	}
	return v.CheckSelling(v.Now, v.Available)
}

// Admit returns the view of a sale that sells now. It returns the refusal of a sale that does not,
// with its view, and Unavailable while the gate is shut.
func (c *Catalog) Admit(ctx context.Context, goodsID int64) (seckill.View, error) {
	shared, err := c.read(ctx, goodsID)
	v := shared.View
	if err != nil {
		return v, err
	}
	if v.Gate != seckill.GateOpen && v.Phase() != seckill.PhaseEnded {
		return v, seckill.NewRebuilding(&seckill.GateError{State: v.Gate, Epoch: v.Epoch})
	}
	return v, v.CheckSelling(v.Now, v.Available)
}

// IssuePath returns a random path of a buyer to a sale that Admit returned, and the end of its
// validity by Redis' clock. It never calls Redis, because a path verifies without a lookup.
// admitted is this node's time at which Admit returned. The limiter may have delayed the buyer
// since then, so IssuePath adds the delay to the view's clock. It refuses if the cached view says
// by now that the sale does not sell.
func (c *Catalog) IssuePath(
	v seckill.View, admitted time.Time, buyerID string,
) (path string, expiresAt time.Time, err error) {
	n := c.keys.Issue(v.GoodsID, buyerID, v.Now.Add(time.Since(admitted)))
	return n.Path(), n.ExpiresAt(), c.knownError(v.GoodsID)
}

// Sales lists exposed sales, newest first, below a goods id (0: from the top). If one Redis master
// is down, the list shows its sales with the data of MySQL. One master must not make the whole list
// unavailable.
func (c *Catalog) Sales(ctx context.Context, below int64, limit int) ([]seckill.View, error) {
	sales, err := c.reader.store.ExposedSales(ctx, below, limit)
	if err != nil {
		return nil, apierror.NewUnavailable("the sales can't be listed", err)
	}
	views, errs := make([]seckill.View, len(sales)), make([]error, len(sales))
	var reads sync.WaitGroup
	for i, sale := range sales {
		reads.Go(func() { views[i], errs[i] = c.Sale(ctx, sale.GoodsID) })
	}
	reads.Wait()
	err = c.reader.fillFromStore(ctx, views, errs, sales)
	for i, sale := range sales {
		views[i].Details = sale.Details
	}
	return views, err
}

// fillFromStore replaces views that failed by MySQL's rows. It returns an error if every view
// failed, or one failed with anything but Unavailable.
func (r *SaleReader) fillFromStore(
	ctx context.Context, views []seckill.View, errs []error, sales []seckill.Sale,
) error {
	missing := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		missing++
		if missing == len(sales) || apierror.ReasonOf(err) != apierror.Unavailable {
			return err
		}
		if views[i], err = r.storedView(ctx, sales[i]); err != nil {
			return err
		}
	}
	return nil
}
