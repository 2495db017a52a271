package httpapi

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/seckill"
)

// merchantSaleResponse is a sale as its merchant and operators see it.
type merchantSaleResponse struct {
	GoodsID       int64              `json:"goodsId,string"`
	MerchantID    string             `json:"merchantId"`
	Title         string             `json:"title"`
	Price         int64              `json:"price"`
	Stock         int64              `json:"stock"` // units offered, including those sold
	Total         int64              `json:"total"` // the same; the name of public sales
	Sold          int64              `json:"sold"`  // units of created and paid orders in MySQL
	Left          int64              `json:"left"`
	Revenue       *int64             `json:"revenue,omitempty"` // of paid orders; only in lists
	StartAt       timestamp          `json:"startAt"`
	EndAt         timestamp          `json:"endAt"`
	PerBuyerLimit int64              `json:"perBuyerLimit"`
	Rate          seckill.Rate       `json:"rate"`
	Admission     seckill.Admission  `json:"admission"`
	AccessCode    seckill.AccessCode `json:"accessCode"`
	Status        seckill.Status     `json:"status"`
	Phase         seckill.Phase      `json:"phase,omitzero"` // exposed sales only
	CreatedAt     timestamp          `json:"createdAt"`
	UpdatedAt     timestamp          `json:"updatedAt"`
	detailsResponse
	ExternalID string            `json:"externalId,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

// detailsResponse is what everybody may know of a sale's details.
type detailsResponse struct {
	Description string `json:"description,omitempty"`
	ImageURL    string `json:"imageUrl,omitempty"`
	Currency    string `json:"currency"`
}

// currency returns the currency of a sale, which is the installation's where it has none.
func (a *api) currency(d seckill.Details) string { return cmp.Or(d.Currency, a.Site.Currency()) }

func (a *api) newDetailsResponse(d seckill.Details) detailsResponse {
	return detailsResponse{
		Description: d.Description, ImageURL: d.ImageURL, Currency: a.currency(d),
	}
}

// merchantSale shows a sale at the present moment of the database's clock: this host's may be off.
// Only an exposed sale has a phase, so any other one, and the answer to an error, needs no clock.
func (a *api) merchantSale(ctx context.Context, s seckill.Sale) merchantSaleResponse {
	var now time.Time
	if s.Status == seckill.Exposed {
		now = a.Sales.Now(ctx)
	}
	return a.newMerchantSaleResponse(s, now)
}

func (a *api) newMerchantSaleResponse(s seckill.Sale, now time.Time) merchantSaleResponse {
	m := merchantSaleResponse{
		GoodsID: s.GoodsID, MerchantID: s.MerchantID, Title: s.Title, Price: s.Price,
		Stock: s.Total, Total: s.Total, Sold: s.Total - s.Stock, Left: s.Stock,
		StartAt: timestamp(s.StartAt), EndAt: timestamp(s.EndAt),
		PerBuyerLimit: s.PerBuyerLimit, Rate: s.Rate, Admission: s.Admission, Status: s.Status,
		// An answer to an Idempotency-Key that an earlier release stored has none.
		AccessCode: cmp.Or(s.AccessCode, seckill.NoCodes),
		CreatedAt:  timestamp(s.CreatedAt), UpdatedAt: timestamp(s.UpdatedAt),
		detailsResponse: a.newDetailsResponse(s.Details),
		ExternalID:      s.Details.ExternalID, Metadata: s.Details.Pairs(),
	}
	if s.Status == seckill.Exposed {
		m.Phase = s.PhaseAt(now, s.Stock)
	}
	return m
}

// createSale is POST /admin/sales. The fields are checked before the role, because the
// contract puts 400 before 403.
func (a *api) createSale(ctx context.Context, r *request) (response, error) {
	n, key := newSale(r.Fields), r.idempotency("POST /admin/sales")
	if err := r.Check(n.Validate()); err != nil {
		return response{}, err
	}
	if err := r.permit(ctx, nil); err != nil {
		return response{}, err
	}
	s, err := a.Sales.Create(ctx, r.actor, n, key)
	return response{
		reason: reasonCreated, data: a.merchantSale(ctx, s),
		location: "/admin/sales/" + strconv.FormatInt(s.GoodsID, 10),
	}, err
}

// newSale takes the fields of a new sale; Validate checks how they fit together.
func newSale(p *params.Fields) seckill.NewSale {
	return seckill.NewSale{
		Title: p.Text("title"), Price: p.Int("price"), Stock: p.Int("stock"),
		StartAt: p.Time("startAt"), EndAt: p.Time("endAt"),
		PerBuyerLimit: p.IntOr("perBuyerLimit", 1, 1, seckill.MaxPerBuyerLimit),
		Rate:          saleRate(p, seckill.DefaultRate()),
		Admission:     saleAdmission(p),
		AccessCode:    saleAccessCode(p),
		Details: seckill.Details{
			Description: textOr(p, "description"), ImageURL: textOr(p, "imageUrl"),
			ExternalID: textOr(p, "externalId"), Currency: textOr(p, "currency"),
			Metadata: metadata(p),
		},
	}
}

// textOr takes a string, or an empty one where the field is absent.
func textOr(p *params.Fields, name string) string {
	if !p.Has(name) {
		return ""
	}
	return p.Text(name)
}

func metadata(p *params.Fields) string { return seckill.MetadataOf(p.Texts("metadata")) }

// saleAdmission takes the way of admission.
func saleAdmission(p *params.Fields) seckill.Admission {
	return params.OneOf(p, "admission", seckill.ByRate, seckill.ByRate, seckill.ByWaitingRoom)
}

// saleAccessCode takes which access codes buyers need.
func saleAccessCode(p *params.Fields) seckill.AccessCode {
	return params.OneOf(p, "accessCode", seckill.NoCodes,
		seckill.NoCodes, seckill.SharedCodes, seckill.SingleCodes)
}

// saleRate takes the rate of random paths; each absent field has its default.
func saleRate(p *params.Fields, def seckill.Rate) seckill.Rate {
	return seckill.Rate{
		Algorithm:        params.OneOf(p, "rate.algorithm", def.Algorithm, rateAlgorithms()...),
		PermitsPerSecond: p.FloatOr("rate.permitsPerSecond", def.PermitsPerSecond),
		MaxBurstSeconds:  p.FloatOr("rate.maxBurstSeconds", def.MaxBurstSeconds),
		MaxWaitMillis: p.IntOr("rate.maxWaitMillis", def.MaxWaitMillis, 0,
			seckill.MaxWaitMillis),
	}
}

// rateAlgorithms are those that a sale's four rate fields describe completely. The others need
// parameters that only a rule has.
func rateAlgorithms() []string { return []string{"smooth_bursty", "reserve", "token_bucket"} }

// listMerchantSales is GET /admin/sales.
func (a *api) listMerchantSales(ctx context.Context, r *request) (response, error) {
	limit, below := r.limit(), r.cursorID()
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	sales, err := a.Sales.List(ctx, r.actor, below, limit+1)
	if err != nil {
		return response{}, err
	}
	revenue, err := a.Statistics.Revenue(ctx, sales)
	now := a.Sales.Now(ctx)
	show := func(s seckill.Sale) merchantSaleResponse {
		m, amount := a.newMerchantSaleResponse(s, now), revenue[s.GoodsID]
		m.Revenue = &amount
		return m
	}
	key := func(s seckill.Sale) string { return saleKey(s.GoodsID) }
	return ok(page(sales, limit, show, key)), err
}

type saleStep func(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)

// withSale returns the handler that runs a step on the sale that the request names. It answers with
// the sale as the step left it.
func (a *api) withSale(step saleStep) handleFunc {
	return func(ctx context.Context, r *request) (response, error) {
		id, err := a.managedGoodsID(ctx, r)
		if err != nil {
			return response{}, err
		}
		s, err := step(ctx, r.actor, id)
		return ok(a.merchantSale(ctx, s)), err
	}
}

// saleLedger is GET /admin/sales/{goodsId}/ledger.
func (a *api) saleLedger(ctx context.Context, r *request) (response, error) {
	id, err := a.managedGoodsID(ctx, r)
	if err != nil {
		return response{}, err
	}
	l, err := a.Sales.Ledger(ctx, r.actor, id)
	return ok(l), err
}

// managedGoodsID takes the goods id of a call for sellers only, and calls permit. The services
// check the sale's owner.
func (a *api) managedGoodsID(ctx context.Context, r *request) (int64, error) {
	id := r.ID("goodsId")
	if err := r.Err(); err != nil {
		return 0, err
	}
	return id, r.permit(ctx, func() error { return errorOnly(a.Sales.Get(ctx, r.actor, id)) })
}
