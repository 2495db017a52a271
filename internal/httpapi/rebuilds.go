package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/seckill"
)

// rebuildResponse is a sale whose gate is not open: a rebuild is under way, or about to begin.
type rebuildResponse struct {
	GoodsID   int64         `json:"goodsId,string"`
	Title     string        `json:"title"`
	Phase     seckill.Phase `json:"phase"`
	Gate      string        `json:"gate"`
	Epoch     int64         `json:"epoch"`
	Available int64         `json:"available"`
}

// listRebuilds is GET /admin/rebuilds. A sale that has ended needs no open gate.
func (a *api) listRebuilds(ctx context.Context, r *request) (response, error) {
	limit, below := r.limit(), r.cursorID()
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	views, err := a.list.Sales(ctx, func(v seckill.View) bool {
		return v.Gate != seckill.GateOpen && v.Phase() != seckill.PhaseEnded
	}, below, limit+1)
	show := func(v seckill.View) rebuildResponse {
		return rebuildResponse{
			GoodsID: v.GoodsID, Title: v.Title, Phase: v.Phase(),
			Gate: v.Gate.Name(), Epoch: v.Epoch, Available: v.Available,
		}
	}
	key := func(v seckill.View) string { return saleKey(v.GoodsID) }
	return ok(page(views, limit, show, key)), err
}
