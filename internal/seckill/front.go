package seckill

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/group"
)

// tripDeadline bounds one trip to Redis for a group of buyers.
const tripDeadline = 2 * time.Second

// Viewer reads sales out of Redis.
type Viewer interface {
	// View reads a sale; ErrNotLoaded where Redis has nothing of it.
	View(ctx context.Context, goodsID int64) (View, error)
}

// Front tells how sales stand now. Those who ask for one at the same time share one look into
// Redis, which is not older than their question. It is safe for concurrent use.
type Front struct {
	viewer  Viewer
	catalog Catalog
	views   *group.Line[int64, struct{}, look]
}

// look is a view and how it came about.
type look struct {
	View
	began   time.Time // by this node's clock, before Redis was asked
	company int       // how many shared it
}

// NewFront makes a front over Redis and MySQL.
func NewFront(viewer Viewer, catalog Catalog) *Front {
	f := &Front{viewer: viewer, catalog: catalog}
	f.views = group.New(MaxGroup, f.trip)
	return f
}

// trip asks once and gives everybody the same answer.
func (f *Front) trip(ctx context.Context, goodsID int64, askers []struct{}) ([]look, error) {
	ctx, cancel := context.WithTimeout(ctx, tripDeadline)
	defer cancel()
	l := look{began: time.Now(), company: len(askers)}
	var err error
	if l.View, err = f.viewer.View(ctx, goodsID); err != nil {
		return nil, err
	}
	looks := make([]look, len(askers))
	for i := range looks {
		looks[i] = l
	}
	return looks, nil
}

// Sale is one sale as it stands: NotFound where there is none or it is a draft. What is over and Redis has forgotten is read from MySQL.
func (f *Front) Sale(ctx context.Context, goodsID int64) (View, error) {
	l, err := f.look(ctx, goodsID)
	return l.View, err
}

func (f *Front) look(ctx context.Context, goodsID int64) (look, error) {
	l, err := f.views.Do(ctx, goodsID, struct{}{})
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, ErrNotLoaded):
		v, err := f.unloaded(ctx, goodsID)
		return look{View: v}, err
	default:
		return look{}, Down("the sale can't be looked at", err)
	}
}

// unloaded tells apart why Redis has nothing of a goods.
func (f *Front) unloaded(ctx context.Context, goodsID int64) (View, error) {
	sale, err := f.catalog.Sale(ctx, goodsID)
	switch {
	case errors.Is(err, ErrNoSuchGoods), err == nil && sale.Status == Draft:
		return View{}, noSuchSale()
	case err != nil:
		return View{}, Down("the sale can't be looked up", err)
	}
	return asInMySQL(sale), nil
}

// asInMySQL is a sale of which Redis has nothing.
func asInMySQL(sale Sale) View {
	return View{Sale: sale, Gate: GateMissing, Available: sale.Stock, Sold: sale.Total - sale.Stock, Now: time.Now().UTC()}
}

func noSuchSale() error { return Refuse(NotFound, "there is no such sale") }
