package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/seckill"
)

// ownSaleAnswer is a sale as who manages it sees it.
type ownSaleAnswer struct {
	GoodsID       int64          `json:"goodsId,string"`
	MerchantID    int64          `json:"merchantId,string"`
	Title         string         `json:"title"`
	Price         int64          `json:"price"`
	Stock         int64          `json:"stock"` // units put up, sold or not
	StartAt       stamp          `json:"startAt"`
	EndAt         stamp          `json:"endAt"`
	PerBuyerLimit int64          `json:"perBuyerLimit"`
	Rate          seckill.Rate   `json:"rate"`
	Status        seckill.Status `json:"status"`
	Phase         seckill.Phase  `json:"phase,omitzero"` // of an exposed sale
	CreatedAt     stamp          `json:"createdAt"`
	UpdatedAt     stamp          `json:"updatedAt"`
}

func (a *api) own(s seckill.Sale) ownSaleAnswer {
	o := ownSaleAnswer{
		GoodsID: s.GoodsID, MerchantID: s.MerchantID, Title: s.Title, Price: s.Price, Stock: s.Total,
		StartAt: stamp(s.StartAt), EndAt: stamp(s.EndAt), PerBuyerLimit: s.PerBuyerLimit, Rate: s.Rate,
		Status: s.Status, CreatedAt: stamp(s.CreatedAt), UpdatedAt: stamp(s.UpdatedAt),
	}
	if s.Status == seckill.Exposed {
		o.Phase = s.PhaseAt(a.now(), s.Stock)
	}
	return o
}

func (a *api) createSale(ctx context.Context, r *request) (answer, error) {
	n, once := newSale(r.Fields), r.once("POST /admin/sales")
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	if err := n.Validate(); err != nil {
		return answer{}, err
	}
	if err := forRole(sells(r.actor), nothingToFind); err != nil {
		return answer{}, err
	}
	s, err := a.Sales.Create(ctx, r.actor, n, once)
	return answer{reason: created, data: a.own(s)}, err
}

func newSale(p *params.Fields) seckill.NewSale {
	return seckill.NewSale{
		Title: p.Text("title"), Price: p.Int("price"), Stock: p.Int("stock"),
		StartAt: p.Time("startAt"), EndAt: p.Time("endAt"),
		PerBuyerLimit: p.IntOr("perBuyerLimit", 1, 1, seckill.MaxPerBuyerLimit),
		Rate:          rate(p, seckill.DefaultRate()),
	}
}

// rate takes the rate of a sale's random paths, each field with its default. Only the algorithms that these four
// fields say everything of may be chosen.
func rate(p *params.Fields, def seckill.Rate) seckill.Rate {
	return seckill.Rate{
		Algorithm:        p.OneOf("rate.algorithm", def.Algorithm, rateAlgorithms()...),
		PermitsPerSecond: p.FloatOr("rate.permitsPerSecond", def.PermitsPerSecond),
		MaxBurstSeconds:  p.FloatOr("rate.maxBurstSeconds", def.MaxBurstSeconds),
		MaxWaitMillis:    p.IntOr("rate.maxWaitMillis", def.MaxWaitMillis, 0, seckill.MaxWaitMillis),
	}
}

func rateAlgorithms() []string { return []string{"smooth_bursty", "reserve", "token_bucket"} }

func (a *api) ownSales(ctx context.Context, r *request) (answer, error) {
	limit, below := r.limit(), r.cursorID()
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	if err := forRole(sells(r.actor), nothingToFind); err != nil {
		return answer{}, err
	}
	sales, err := a.Sales.List(ctx, r.actor, below, limit+1)
	if err != nil {
		return answer{}, err
	}
	return ok(page(sales, limit, a.own, func(s seckill.Sale) string { return saleKey(s.GoodsID) })), nil
}

func (a *api) ownSale(ctx context.Context, r *request) (answer, error) {
	return a.withSale(ctx, r, a.Sales.Get)
}

func (a *api) exposeSale(ctx context.Context, r *request) (answer, error) {
	return a.withSale(ctx, r, a.Sales.Expose)
}

func (a *api) closeSale(ctx context.Context, r *request) (answer, error) {
	return a.withSale(ctx, r, a.Sales.Close)
}

type saleStep func(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)

func (a *api) withSale(ctx context.Context, r *request, step saleStep) (answer, error) {
	id, err := a.managedSale(ctx, r)
	if err != nil {
		return answer{}, err
	}
	s, err := step(ctx, r.actor, id)
	return ok(a.own(s)), err
}

func (a *api) ledger(ctx context.Context, r *request) (answer, error) {
	id, err := a.managedSale(ctx, r)
	if err != nil {
		return answer{}, err
	}
	l, err := a.Sales.Ledger(ctx, r.actor, id)
	return ok(l), err
}

// managedSale takes the goods id of a call that only those who sell may make. Whose sale it is, the services judge.
func (a *api) managedSale(ctx context.Context, r *request) (int64, error) {
	id := r.ID("goodsId")
	if err := r.Err(); err != nil {
		return 0, err
	}
	return id, forRole(sells(r.actor), func() error {
		_, err := a.Sales.Get(ctx, r.actor, id)
		return err
	})
}
