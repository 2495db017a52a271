package httpapi

import (
	"cmp"
	"context"

	"flashsale.dev/seckill/internal/httpapi/params"
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

// listSales is GET /sales. All clients share the cached pages, so its load does not grow with the
// number of visitors.
func (a *api) listSales(ctx context.Context, r *request) (response, error) {
	limit, below := r.limit(), r.cursorID()
	phase := params.OneOf(r.Fields, "phase", "",
		seckill.Upcoming, seckill.Ongoing, seckill.PhaseSoldOut, seckill.PhaseEnded)
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	inPhase := func(v seckill.View) bool { return phase == "" || v.Phase() == phase }
	views, err := a.list.Sales(ctx, inPhase, below, limit+1)
	key := func(v seckill.View) string { return saleKey(v.GoodsID) }
	shown := page(views, limit, a.newSaleResponse, key)
	return response{reason: reasonOK, data: shown, public: true, etag: etagOf(shown)}, err
}

// showSale is GET /sales/{goodsId}. It reads Redis, so that the response has the current stock.
func (a *api) showSale(ctx context.Context, r *request) (response, error) {
	id, err := a.exposedGoodsID(ctx, r)
	if err != nil {
		return response{}, err
	}
	v, err := a.Catalog.SaleWithDetails(ctx, id)
	return response{reason: reasonOK, data: a.newSaleResponse(v), public: true}, err
}
