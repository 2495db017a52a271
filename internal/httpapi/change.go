package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/seckill"
)

// changeSale is PATCH: what is left out stays as it is.
func (a *api) changeSale(ctx context.Context, r *request) (answer, error) {
	id := r.id("goodsId")
	c, once := saleChange(r.params), r.once("PATCH /admin/sales/"+r.find("goodsId").text)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	if err := c.Validate(); err != nil {
		return answer{}, err
	}
	if _, err := a.managedSale(ctx, r); err != nil {
		return answer{}, err
	}
	s, err := a.Changes.Change(ctx, r.actor, id, c, once)
	return ok(a.own(s)), err
}

func saleChange(p *params) seckill.Change {
	c := seckill.Change{
		Title: given(p, "title", p.words), Price: given(p, "price", p.whole), PerBuyerLimit: given(p, "perBuyerLimit", p.whole),
		StartAt: given(p, "startAt", p.when), EndAt: given(p, "endAt", p.when),
		Rate: seckill.RateChange{
			Algorithm: given(p, "rate.algorithm", p.algorithm), PermitsPerSecond: given(p, "rate.permitsPerSecond", p.float),
			MaxBurstSeconds: given(p, "rate.maxBurstSeconds", p.float), MaxWaitMillis: given(p, "rate.maxWaitMillis", p.whole),
		},
	}
	if p.find("stockDelta") != nil {
		if c.StockDelta = p.integer("stockDelta"); c.StockDelta == 0 {
			p.complain("stockDelta", "must be a whole number, and not 0")
		}
	}
	return c
}

func (p *params) words(name, _ string) string             { return p.text(name) }
func (p *params) when(name string, _ time.Time) time.Time { return p.moment(name) }
func (p *params) algorithm(name, _ string) string         { return p.oneOf(name, "", rateAlgorithms()...) }

func (a *api) deleteSale(ctx context.Context, r *request) (answer, error) {
	once := r.once("DELETE /admin/sales/" + r.find("goodsId").text)
	id, err := a.managedSale(ctx, r)
	if err != nil {
		return answer{}, err
	}
	return ok(nil), a.Changes.Delete(ctx, r.actor, id, once)
}

// auditAnswer is one change of a sale.
type auditAnswer struct {
	ID        string          `json:"id"`
	ActorID   int64           `json:"actorId,string"`
	ActorRole seckill.Role    `json:"actorRole"`
	Action    seckill.Action  `json:"action"`
	From      json.RawMessage `json:"from"`
	To        json.RawMessage `json:"to"`
	At        stamp           `json:"at"`
}

func showAudit(e seckill.AuditEntry) auditAnswer {
	return auditAnswer{ID: e.ID, ActorID: e.ActorID, ActorRole: e.Role, Action: e.Action, From: e.Was, To: e.Became, At: stamp(e.At)}
}

func (a *api) auditOfSale(ctx context.Context, r *request) (answer, error) {
	limit, before := r.limit(), r.cursorUUID(auditCursor)
	id, err := a.managedSale(ctx, r)
	if err != nil {
		return answer{}, err
	}
	found, err := a.Sales.Audit(ctx, r.actor, id, before, limit+1)
	if err != nil {
		return answer{}, err
	}
	return ok(page(found, limit, showAudit, func(e seckill.AuditEntry) string { return auditCursor + e.ID })), nil
}

// cursorUUID takes the cursor of a list whose keys are UUIDs; "" is the top.
func (p *params) cursorUUID(kind string) string {
	s := p.cursor(kind)
	if s != "" && (len(s) != 36 || uuid.Validate(s) != nil) {
		p.complain("cursor", "is not one of ours")
	}
	return s
}
