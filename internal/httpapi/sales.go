package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/seckill"
)

// shownSale is what everybody sees of an exposed sale.
type shownSale struct {
	GoodsID       int64         `json:"goodsId,string"`
	Title         string        `json:"title"`
	Price         int64         `json:"price"`
	PerBuyerLimit int64         `json:"perBuyerLimit"`
	Phase         seckill.Phase `json:"phase"`
	Available     int64         `json:"available"`
	Total         int64         `json:"total"`
	StartAt       stamp         `json:"startAt"`
	EndAt         stamp         `json:"endAt"`
	ServerTime    stamp         `json:"serverTime"` // Redis' clock, by which the window is judged
}

func showView(v seckill.View) shownSale {
	return shownSale{
		GoodsID: v.GoodsID, Title: v.Title, Price: v.Price, PerBuyerLimit: v.PerBuyerLimit,
		Phase: v.PhaseAt(v.Now, v.Available), Available: v.Available, Total: v.Total,
		StartAt: stamp(v.StartAt), EndAt: stamp(v.EndAt), ServerTime: stamp(v.Now),
	}
}

func (a *api) listSales(ctx context.Context, r *request) (answer, error) {
	limit, below := r.limit(), r.cursorID()
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	views, err := a.board.Sales(ctx, below, limit+1)
	if err != nil {
		return answer{}, err
	}
	shown := page(views, limit, showView, func(v seckill.View) string { return saleKey(v.GoodsID) })
	return answer{reason: okReason, data: shown, public: true, etag: etagOf(shown)}, nil
}

func (a *api) showSale(ctx context.Context, r *request) (answer, error) {
	id := r.ID("goodsId")
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	v, err := a.Shop.Sale(ctx, id)
	return answer{reason: okReason, data: showView(v), public: true}, err
}
