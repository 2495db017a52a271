package httpapi

import (
	"cmp"
	"context"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
)

type pathResponse struct {
	RandomPath string    `json:"randomPath"`
	ExpiresAt  timestamp `json:"expiresAt"`
}

// issuePath is a purchase's first step: check the sale, take a permit, issue a random path. It
// checks the sale first. A sold-out sale then costs no permit, and its buyers get the reason
// instead of 429. A waiting room takes the place of the sale's rate.
//
// Arithmetic refuses a wrong access code before the sale's state, as any 403. A single code is
// claimed last, so that the sale's rate bounds the writes.
func (a *api) issuePath(ctx context.Context, r *request) (response, error) {
	text := textOr(r.Fields, "code")
	id, err := a.exposedGoodsID(ctx, r)
	if err != nil {
		return response{}, err
	}
	v, err := a.Catalog.Admit(ctx, id)
	code, wrong := a.Codes.Verify(v, text)
	if err := cmp.Or(wrong, err); err != nil {
		return response{}, err
	}
	admitted := time.Now()
	if err := a.Limiter.limitPath(ctx, v, r.actor); err != nil {
		return response{}, err
	}
	if v.Admission == seckill.ByWaitingRoom {
		if err := a.Rooms.Require(ctx, id, r.actor.ID); err != nil {
			return response{}, err
		}
	}
	if err := a.Codes.Claim(ctx, v, code, r.actor.ID); err != nil {
		return response{}, err
	}
	path, expires, err := a.Catalog.IssuePath(v, admitted, r.actor.ID)
	return ok(pathResponse{RandomPath: path, ExpiresAt: timestamp(expires)}), err
}

// cachedError returns the error that this node has cached for the sale. Most callers of a rush
// get it, at a fraction of issuePath's cost.
func (a *api) cachedError(r *request) error {
	id, text := r.ID("goodsId"), textOr(r.Fields, "code")
	if r.Err() != nil || !isBuyer(r.actor) {
		return nil // issuePath refuses, in the contract's order
	}
	v, known := a.Catalog.Known(id)
	if !known {
		return nil
	}
	if _, err := a.Codes.Verify(v, text); err != nil {
		return err
	}
	return v.CheckSelling(v.Now, v.Available)
}

type queuedResponse struct {
	OrderSn string `json:"orderSn"`
}

// decrStock is a purchase's second step. The order is queued when the units are reserved and the
// broker has confirmed the message.
func (a *api) decrStock(ctx context.Context, r *request) (response, error) {
	path := r.Raw("randomPath")
	p := purchase.Request{
		GoodsID: r.ID("goodsId"), Buyer: a.sealContact(r.actor), Path: path,
		Quantity: r.IntOr("decrStock", 1, 1, seckill.MaxPerBuyerLimit),
	}
	if err := r.Err(); err != nil {
		return response{}, err
	}
	err := r.permit(ctx, func() error { return a.Purchases.Precheck(ctx, p) })
	if err != nil {
		return response{}, err
	}
	if !ordersn.IsPath(path) {
		return response{}, a.Purchases.Precheck(ctx, p)
	}
	sn, err := a.Purchases.Place(ctx, p)
	if apierror.ReasonOf(err) == apierror.Waiting {
		// The reserve script knows no position.
		if e := a.Rooms.Require(ctx, p.GoodsID, r.actor.ID); e != nil {
			err = e
		}
	}
	return response{
		reason: reasonQueued, data: queuedResponse{OrderSn: sn}, location: "/orders/" + sn,
	}, err
}

// soldOut refuses purchases of a sold-out sale at a fraction of decrStock's cost: it takes no
// permit, sets no timer, and encrypts nothing. Where a rate limit protects the route, decrStock
// refuses.
func (a *api) soldOut(r *request) error {
	if !a.Purchases.SeemsSoldOut(r.purchasedGoods()) {
		return nil
	}
	p := purchase.Request{
		GoodsID: r.ID("goodsId"), Buyer: r.actor, Path: r.Raw("randomPath"),
		Quantity: r.IntOr("decrStock", 1, 1, seckill.MaxPerBuyerLimit),
	}
	ctx := r.gin.Request.Context()
	if r.Err() != nil || r.denied != nil || a.Limiter.limitsRoute(ctx) {
		return nil
	}
	return a.Purchases.CheckSoldOut(context.WithoutCancel(ctx), p)
}

// exposedGoodsID takes the goods id of a call about an exposed sale, and calls permit.
func (a *api) exposedGoodsID(ctx context.Context, r *request) (int64, error) {
	id := r.ID("goodsId")
	if err := r.Err(); err != nil {
		return 0, err
	}
	return id, r.permit(ctx, func() error { return a.requireExposed(ctx, id) })
}

// requireExposed returns NOT_FOUND for a goods without an exposed sale. Drafts are
// hidden from buyers.
func (a *api) requireExposed(ctx context.Context, goodsID int64) error {
	_, err := a.Catalog.Sale(ctx, goodsID)
	return err
}
