package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// deadLetterResponse is what an operator needs to decide about a dead letter. It leaves out the
// message, which has a buyer's name and phone number.
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
	limit, after := r.limit(), r.cursor(deadLetterCursor, isUUID)
	if err := r.checked(isOperator(r.actor)); err != nil {
		return response{}, err
	}
	found, err := a.DeadLetters.List(ctx, after, limit+1)
	key := func(d order.DeadLetter) string { return deadLetterCursor + d.ID }
	return ok(page(found, limit, newDeadLetterResponse, key)), err
}

// requeueDeadLetter is POST /admin/dead-letters/{id}/requeue: the service reserves the units again
// and writes the order. The response masks the buyer's data, because the operator is no party of
// the order.
func (a *api) requeueDeadLetter(ctx context.Context, r *request) (response, error) {
	id, err := deadLetterID(r)
	if err != nil {
		return response{}, err
	}
	o, err := a.DeadLetters.Requeue(ctx, id)
	return ok(a.newMaskedOrderResponse(o)), err
}

// discardDeadLetter is DELETE /admin/dead-letters/{id}. The order keeps the status failed.
func (a *api) discardDeadLetter(ctx context.Context, r *request) (response, error) {
	id, err := deadLetterID(r)
	if err != nil {
		return response{}, err
	}
	return ok(nil), a.DeadLetters.Discard(ctx, id)
}

// deadLetterID checks the role first: other roles must not learn which dead letters exist.
func deadLetterID(r *request) (string, error) {
	if err := requireRole(isOperator(r.actor), nil); err != nil {
		return "", err
	}
	id := r.Raw("id")
	if !isUUID(id) {
		return "", seckill.NewError(seckill.NotFound, "there is no such dead letter")
	}
	return id, nil
}
