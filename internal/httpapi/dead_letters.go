package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// Letters resolves dead letters; *order.Coroner is one.
type Letters interface {
	// List gives letters, oldest first, after an id ("": from the oldest), at most limit of them.
	List(ctx context.Context, after string, limit int) ([]order.DeadLetter, error)
	Requeue(ctx context.Context, id string) (order.Order, error)
	Discard(ctx context.Context, id string) error
}

var _ Letters = (*order.Coroner)(nil)

func (a *api) letterRoutes() []route {
	if a.Letters == nil {
		return nil
	}
	const path = "/admin/dead-letters"
	return []route{
		{methods: []string{http.MethodGet, http.MethodHead}, path: path, fields: []string{"limit", "cursor"}, do: a.deadLetters},
		{methods: []string{http.MethodPost}, path: path + "/:id/requeue", do: a.requeue},
		{methods: []string{http.MethodDelete}, path: path + "/:id", do: a.discard},
	}
}

const letterCursor = "d"

// letterAnswer leaves the body out: it holds a buyer's name and phone number.
type letterAnswer struct {
	ID          string              `json:"id"`
	OrderSn     string              `json:"orderSn"`
	GoodsID     int64               `json:"goodsId,string"` // 0 where the message did not say
	Reason      order.FailureReason `json:"reason"`
	Attempts    int                 `json:"attempts"`
	FirstSeenAt stamp               `json:"firstSeenAt"`
	Origin      string              `json:"origin"`
}

func showLetter(d order.DeadLetter) letterAnswer {
	return letterAnswer{
		ID: d.ID, OrderSn: d.OrderSn, GoodsID: d.GoodsID, Reason: d.Reason, Attempts: d.Attempts,
		FirstSeenAt: stamp(d.FirstSeenAt), Origin: d.Origin,
	}
}

func (a *api) deadLetters(ctx context.Context, r *request) (answer, error) {
	limit, after := r.limit(), r.cursorUUID(letterCursor)
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	if err := forOperators(r.actor); err != nil {
		return answer{}, err
	}
	found, err := a.Letters.List(ctx, after, limit+1)
	if err != nil {
		return answer{}, err
	}
	return ok(page(found, limit, showLetter, func(d order.DeadLetter) string { return letterCursor + d.ID })), nil
}

func (a *api) requeue(ctx context.Context, r *request) (answer, error) {
	id, err := letterOf(r)
	if err != nil {
		return answer{}, err
	}
	o, err := a.Letters.Requeue(ctx, id)
	return ok(a.listed(o)), err
}

func (a *api) discard(ctx context.Context, r *request) (answer, error) {
	id, err := letterOf(r)
	if err != nil {
		return answer{}, err
	}
	return ok(nil), a.Letters.Discard(ctx, id)
}

// letterOf takes the id of a letter. Who may not resolve any hears nothing of which there are.
func letterOf(r *request) (string, error) {
	if err := forOperators(r.actor); err != nil {
		return "", err
	}
	id := r.Raw("id")
	if len(id) != 36 || uuid.Validate(id) != nil {
		return "", seckill.Refuse(seckill.NotFound, "there is no such dead letter")
	}
	return id, nil
}

func forOperators(by seckill.Actor) error {
	return forRole(by.Role == seckill.Operator, nothingToFind)
}
