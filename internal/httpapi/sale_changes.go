package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// changeSale is PATCH /admin/sales/{goodsId}: an absent field keeps its value. The service decides
// which fields of an exposed sale may still change.
func (a *api) changeSale(ctx context.Context, r *request) (response, error) {
	id := r.ID("goodsId")
	c, key := saleChange(r.Fields), r.idempotency("PATCH /admin/sales/"+r.Raw("goodsId"))
	if err := r.Check(c.Validate()); err != nil {
		return response{}, err
	}
	if _, err := a.managedGoodsID(ctx, r); err != nil {
		return response{}, err
	}
	s, err := a.Sales.Change(ctx, r.actor, id, c, key)
	return ok(a.merchantSale(ctx, s)), err
}

// saleChange takes the fields of a change. A stock change is relative, so that it is safe
// while buyers reserve units.
func saleChange(p *params.Fields) salechange.Change {
	algorithm := func(name string) string { return params.OneOf(p, name, "", rateAlgorithms()...) }
	c := salechange.Change{
		Title:         params.Optional(p, "title", p.Text),
		Price:         params.Optional(p, "price", p.Int),
		PerBuyerLimit: params.Optional(p, "perBuyerLimit", p.Int),
		StartAt:       params.Optional(p, "startAt", p.Time),
		EndAt:         params.Optional(p, "endAt", p.Time),
		Rate: salechange.RateChange{
			Algorithm:        params.Optional(p, "rate.algorithm", algorithm),
			PermitsPerSecond: params.Optional(p, "rate.permitsPerSecond", p.Float),
			MaxBurstSeconds:  params.Optional(p, "rate.maxBurstSeconds", p.Float),
			MaxWaitMillis:    params.Optional(p, "rate.maxWaitMillis", p.Int),
		},
		Description: params.Optional(p, "description", p.Text),
		ImageURL:    params.Optional(p, "imageUrl", p.Text),
		ExternalID:  params.Optional(p, "externalId", p.Text),
		Currency:    params.Optional(p, "currency", p.Text),
	}
	if p.HasObject("metadata") { // it replaces all pairs
		pairs := metadata(p)
		c.Metadata = &pairs
	}
	if p.Has("admission") {
		admission := saleAdmission(p)
		c.Admission = &admission
	}
	if p.Has("accessCode") {
		c.AccessCode = new(saleAccessCode(p))
	}
	if p.Has("stockDelta") {
		if c.StockDelta = p.Int("stockDelta"); c.StockDelta == 0 {
			p.Reject("stockDelta", "must be a whole number, and not 0")
		}
	}
	return c
}

// deleteSale is DELETE /admin/sales/{goodsId}; only drafts can be deleted.
func (a *api) deleteSale(ctx context.Context, r *request) (response, error) {
	key := r.idempotency("DELETE /admin/sales/" + r.Raw("goodsId"))
	id, err := a.managedGoodsID(ctx, r)
	if err != nil {
		return response{}, err
	}
	return ok(nil), a.Sales.Delete(ctx, r.actor, id, key)
}

// auditResponse is one recorded change. The values before and after are returned as they
// were stored, so that entries of older versions stay readable.
type auditResponse struct {
	ID        string            `json:"id"`
	GoodsID   int64             `json:"goodsId,string,omitzero"` // absent: not of a sale
	ActorID   string            `json:"actorId"`
	ActorRole seckill.Role      `json:"actorRole"`
	APIKey    *auditedKey       `json:"apiKey,omitzero"` // nil: a person, or the system
	Action    salechange.Action `json:"action"`
	From      map[string]any    `json:"from"`
	To        map[string]any    `json:"to"`
	At        timestamp         `json:"at"`
}

// auditedKey is the API key that made a change, with its name at that time.
type auditedKey struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func newAuditResponse(e salechange.AuditEntry) auditResponse {
	r := auditResponse{
		ID: e.ID, GoodsID: e.GoodsID, ActorID: e.ActorID, ActorRole: e.Role, Action: e.Action,
		From: e.Was, To: e.Became, At: timestamp(e.At),
	}
	if e.APIKey.ID != "" {
		r.APIKey = &auditedKey{ID: e.APIKey.ID, Name: e.APIKey.Name}
	}
	return r
}

// auditOfSale is GET /admin/sales/{goodsId}/audit.
func (a *api) auditOfSale(ctx context.Context, r *request) (response, error) {
	limit, before := r.limit(), r.cursor(auditCursor, isUUID)
	id, err := a.managedGoodsID(ctx, r)
	if err != nil {
		return response{}, err
	}
	f := salechange.AuditFilter{GoodsID: id}
	found, err := a.Sales.AuditTrail(ctx, r.actor, f, before, limit+1)
	key := func(e salechange.AuditEntry) string { return auditCursor + e.ID }
	return ok(page(found, limit, newAuditResponse, key)), err
}

// auditTrail is GET /admin/audit: what the actor may see of the whole log.
func (a *api) auditTrail(ctx context.Context, r *request) (response, error) {
	limit, before := r.limit(), r.cursor(auditCursor, isUUID)
	f := salechange.AuditFilter{
		Action: params.OneOf(r.Fields, "action", "", salechange.Actions()...),
	}
	var lookup func() error
	if r.Has("goodsId") {
		f.GoodsID = r.ID("goodsId")
		lookup = func() error { return errorOnly(a.Sales.Get(ctx, r.actor, f.GoodsID)) }
	}
	if err := r.Err(); err != nil {
		return response{}, err
	}
	if err := r.permit(ctx, lookup); err != nil {
		return response{}, err
	}
	found, err := a.Sales.AuditTrail(ctx, r.actor, f, before, limit+1)
	key := func(e salechange.AuditEntry) string { return auditCursor + e.ID }
	return ok(page(found, limit, newAuditResponse, key)), err
}
