package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/deadletter"
	"flashsale.dev/seckill/internal/seckill"
)

// DeadLetters resolves dead letters; *deadletter.Service is one.
type DeadLetters interface {
	// List gives letters, oldest first, after an id ("": from the oldest), at most limit of them.
	List(ctx context.Context, after string, limit int) ([]order.DeadLetter, error)
	Requeue(ctx context.Context, id string) (order.Order, error)
	Discard(ctx context.Context, id string) error
}

var _ DeadLetters = (*deadletter.Service)(nil)

func (a *api) deadLetterRoutes() []route {
	if a.DeadLetters == nil {
		return nil
	}
	const path = "/admin/dead-letters"
	return []route{
		{methods: []string{http.MethodGet, http.MethodHead}, path: path, fields: []string{"limit", "cursor"}, handle: a.listDeadLetters},
		{methods: []string{http.MethodPost}, path: path + "/:id/requeue", handle: a.requeueDeadLetter},
		{methods: []string{http.MethodDelete}, path: path + "/:id", handle: a.discardDeadLetter},
	}
}

const deadLetterCursor = "d"

// deadLetterResponse leaves the body out: it holds a buyer's name and phone number.
type deadLetterResponse struct {
	ID          string              `json:"id"`
	OrderSn     string              `json:"orderSn"`
	GoodsID     int64               `json:"goodsId,string"` // 0 where the message did not say
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
	return ok(page(found, limit, newDeadLetterResponse, func(d order.DeadLetter) string { return deadLetterCursor + d.ID })), nil
}

func (a *api) requeueDeadLetter(ctx context.Context, r *request) (response, error) {
	id, err := deadLetterID(r)
	if err != nil {
		return response{}, err
	}
	o, err := a.DeadLetters.Requeue(ctx, id)
	return ok(a.newMaskedOrderResponse(o)), err
}

func (a *api) discardDeadLetter(ctx context.Context, r *request) (response, error) {
	id, err := deadLetterID(r)
	if err != nil {
		return response{}, err
	}
	return ok(nil), a.DeadLetters.Discard(ctx, id)
}

// deadLetterID takes the id of a letter. Who may not resolve any hears nothing of which there are.
func deadLetterID(r *request) (string, error) {
	if err := requireOperatorRole(r.actor); err != nil {
		return "", err
	}
	id := r.Raw("id")
	if len(id) != 36 || uuid.Validate(id) != nil {
		return "", seckill.NewError(seckill.NotFound, "there is no such dead letter")
	}
	return id, nil
}

func requireOperatorRole(by seckill.Actor) error {
	return requireRole(by.Role == seckill.Operator, noLookup)
}
