package httpapi

import (
	"cmp"
	"context"

	"flashsale.dev/seckill/internal/seckill"
)

// saleResponse is an exposed sale in public responses. The server computes the phase, because the
// clock of a buyer's device may be wrong.
type saleResponse struct {
	GoodsID       int64              `json:"goodsId,string"`
	Title         string             `json:"title"`
	Price         int64              `json:"price"`
	PerBuyerLimit int64              `json:"perBuyerLimit"`
	Admission     seckill.Admission  `json:"admission"`
	AccessCode    seckill.AccessCode `json:"accessCode"`
	Phase         seckill.Phase      `json:"phase"`
	Available     int64              `json:"available"`
	Total         int64              `json:"total"`
	StartAt       timestamp          `json:"startAt"`
	EndAt         timestamp          `json:"endAt"`
	ServerTime    timestamp          `json:"serverTime"` // Redis' clock, which decides about the phase
	detailsResponse
}

func (a *api) newSaleResponse(v seckill.View) saleResponse {
	return saleResponse{
		detailsResponse: a.newDetailsResponse(v.Details),

		GoodsID: v.GoodsID, Title: v.Title, Price: v.Price, PerBuyerLimit: v.PerBuyerLimit,
		Admission: v.Admission, AccessCode: cmp.Or(v.AccessCode, seckill.NoCodes),
		Phase: v.Phase(), Available: v.Available, Total: v.Total,
		StartAt: timestamp(v.StartAt), EndAt: timestamp(v.EndAt), ServerTime: timestamp(v.Now),
	}
}

// listSales is GET /sales. All clients share one cached page, so its load does not grow
// with the number of visitors.
func (a *api) listSales(ctx context.Context, r *request) (response, error) {
	limit, below := r.limit(), r.cursorID()
	phase := seckill.Phase(r.OneOf("phase", "", string(seckill.Upcoming), string(seckill.Ongoing),
		string(seckill.PhaseSoldOut), string(seckill.PhaseEnded)))
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	views, err := a.salesIn(ctx, phase, below, limit+1)
	key := func(v seckill.View) string { return saleKey(v.GoodsID) }
	shown := page(views, limit, a.newSaleResponse, key)
	return response{reason: reasonOK, data: shown, public: true, etag: etagOf(shown)}, err
}

// pageInPhase is the size of the cached pages in which salesIn searches.
const pageInPhase = 100

// salesIn lists the exposed sales in a phase ("": in any), newest first, below a goods id. It reads
// the pages that all searches share, because only Redis has the phase and the gate.
func (a *api) salesIn(
	ctx context.Context, phase seckill.Phase, below int64, limit int,
) (found []seckill.View, err error) {
	if phase == "" {
		return a.list.Sales(ctx, below, limit)
	}
	return a.salesWith(ctx, func(v seckill.View) bool {
		return v.Phase() == phase
	}, below, limit)
}

// salesWith lists the exposed sales that have a property of their views, newest first, below a
// goods id.
func (a *api) salesWith(
	ctx context.Context, has func(seckill.View) bool, below int64, limit int,
) (found []seckill.View, err error) {
	for len(found) < limit {
		views, err := a.list.Sales(ctx, below, pageInPhase)
		if err != nil {
			return nil, err
		}
		for _, v := range views {
			if has(v) {
				found = append(found, v)
			}
		}
		if len(views) < pageInPhase {
			break
		}
		below = views[len(views)-1].GoodsID
	}
	return found[:min(limit, len(found))], nil
}

// showSale is GET /sales/{goodsId}. It reads Redis, so that the response has the current stock.
func (a *api) showSale(ctx context.Context, r *request) (response, error) {
	id, err := a.exposedSale(ctx, r)
	if err != nil {
		return response{}, err
	}
	v, err := a.Catalog.SaleWithDetails(ctx, id)
	return response{reason: reasonOK, data: a.newSaleResponse(v), public: true}, err
}
