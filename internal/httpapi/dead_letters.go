package httpapi

import (
	"context"
	"net/http"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// DeadLetters lists and resolves dead letters.
type DeadLetters interface {
	// List returns dead letters, oldest first: at most limit of those after the given id ("" starts
	// at the oldest).
	List(ctx context.Context, after string, limit int) ([]order.DeadLetter, error)
	Requeue(ctx context.Context, id string) (order.Order, error)
	Discard(ctx context.Context, id string) error
}

func (a *api) deadLetterRoutes() []route {
	if a.DeadLetters == nil {
		return nil
	}
	const path = "/admin/dead-letters"
	return []route{
		{methods: readMethods(), path: path, fields: pageFields(), handle: a.listDeadLetters},
		{methods: []string{http.MethodPost}, path: path + "/:id/requeue", handle: a.requeueDeadLetter},
		{methods: []string{http.MethodDelete}, path: path + "/:id", handle: a.discardDeadLetter},
	}
}

// deadLetterResponse leaves out the message, which has a buyer's name and phone number.
type deadLetterResponse struct {
	ID          string              `json:"id"`
	OrderSn     string              `json:"orderSn"`
	GoodsID     int64               `json:"goodsId,string"` // 0 where the message had none
	Reason      order.FailureReason `json:"reason"`
	Attempts    int                 `json:"attempts"`
	FirstSeenAt timestamp           `json:"firstSeenAt"`
	Origin      string              `json:"origin"`
}

func newDeadLetterResponse(d order.DeadLetter) deadLetterResponse {
	return deadLetterResponse{
		ID: d.ID, OrderSn: d.OrderSn, GoodsID: d.GoodsID, Reason: d.Reason, Attempts: d.Attempts,
		FirstSeenAt: timestamp(d.FirstSeenAt), Origin: d.Origin,
	}
}

// listDeadLetters is GET /admin/dead-letters.
func (a *api) listDeadLetters(ctx context.Context, r *request) (response, error) {
	limit, after := r.limit(), r.cursorUUID(deadLetterCursor)
	if err := r.Err(); err != nil {
		return response{}, err
	}
	if err := requireOperatorRole(r.actor); err != nil {
		return response{}, err
	}
	found, err := a.DeadLetters.List(ctx, after, limit+1)
	if err != nil {
		return response{}, err
	}
	key := func(d order.DeadLetter) string { return deadLetterCursor + d.ID }
	return ok(page(found, limit, newDeadLetterResponse, key)), nil
}

// requeueDeadLetter is POST /admin/dead-letters/{id}/requeue: the order is written after
// all.
func (a *api) requeueDeadLetter(ctx context.Context, r *request) (response, error) {
	id, err := deadLetterID(r)
	if err != nil {
		return response{}, err
	}
	o, err := a.DeadLetters.Requeue(ctx, id)
	return ok(a.newMaskedOrderResponse(o)), err
}

// discardDeadLetter is DELETE /admin/dead-letters/{id}: its order stays failed.
func (a *api) discardDeadLetter(ctx context.Context, r *request) (response, error) {
	id, err := deadLetterID(r)
	if err != nil {
		return response{}, err
	}
	return ok(nil), a.DeadLetters.Discard(ctx, id)
}

// deadLetterID checks the role first: other roles must not learn which dead letters exist.
func deadLetterID(r *request) (string, error) {
	if err := requireOperatorRole(r.actor); err != nil {
		return "", err
	}
	id := r.Raw("id")
	if !isUUID(id) {
		return "", seckill.NewError(seckill.NotFound, "there is no such dead letter")
	}
	return id, nil
}

func requireOperatorRole(by seckill.Actor) error {
	return requireRole(by.Role == seckill.Operator, noLookup)
}
