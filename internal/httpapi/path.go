package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

type pathAnswer struct {
	RandomPath string `json:"randomPath"`
	ExpiresAt  stamp  `json:"expiresAt"`
}

// issuePath is the buyer's first step: does the sale take buyers, is there a permit, then the path.
func (a *api) issuePath(ctx context.Context, r *request) (answer, error) {
	id := r.ID("goodsId")
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	if err := a.onlyBuyers(ctx, r.actor, id); err != nil {
		return answer{}, err
	}
	v, err := a.Shop.Admit(ctx, id)
	if err != nil {
		return answer{}, err
	}
	if err := a.Limiter.LimitPath(ctx, v, r.actor); err != nil {
		return answer{}, err
	}
	path, expires, err := a.Shop.IssuePath(ctx, v, r.actor.ID)
	return ok(pathAnswer{RandomPath: path, ExpiresAt: stamp(expires)}), err
}

// refusedPath is the answer that nearly everybody gets in a rush, where it is known without asking.
func (a *api) refusedPath(r *request) error {
	id := r.ID("goodsId")
	if r.Err() != nil || !buys(r.actor) {
		return nil // for issuePath to refuse, in its order
	}
	return a.Shop.Refused(id)
}

type queuedAnswer struct {
	OrderSn string `json:"orderSn"`
}

// decrStock is the second step: the order is queued once the reservation and its confirm are there.
func (a *api) decrStock(ctx context.Context, r *request) (answer, error) {
	path := r.Raw("randomPath")
	p := order.Purchase{GoodsID: r.ID("goodsId"), Buyer: a.sealed(r.actor), Path: path, Quantity: r.IntOr("decrStock", 1, 1, seckill.MaxQuantity)}
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	if err := a.onlyBuyers(ctx, r.actor, p.GoodsID); err != nil {
		return answer{}, err
	}
	if seckill.CheckPath(path) != nil {
		return answer{}, a.badPath(ctx, p.GoodsID)
	}
	sn, err := a.Desk.Place(ctx, p)
	return answer{reason: queued, data: queuedAnswer{OrderSn: sn}}, err
}

func (a *api) onlyBuyers(ctx context.Context, by seckill.Actor, goodsID int64) error {
	return forRole(buys(by), func() error { return a.exposed(ctx, goodsID) })
}

func (a *api) exposed(ctx context.Context, goodsID int64) error {
	_, err := a.Shop.Sale(ctx, goodsID)
	return err
}

// badPath refuses a path that cannot be one, after a goods that is not there.
func (a *api) badPath(ctx context.Context, goodsID int64) error {
	if err := a.exposed(ctx, goodsID); seckill.ReasonOf(err) == seckill.NotFound {
		return err
	}
	return seckill.Verdict{Code: seckill.WrongPath}.Err()
}
