package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// deadLetterResponse is what an operator needs to decide about a dead letter. The buyer's name and
// phone number are masked, as in every list.
type deadLetterResponse struct {
	ID          string              `json:"id"`
	OrderSn     string              `json:"orderSn"`
	GoodsID     int64               `json:"goodsId,string"` // 0 where the message had none
	Reason      order.FailureReason `json:"reason"`
	Attempts    int                 `json:"attempts"`
	FirstSeenAt timestamp           `json:"firstSeenAt"`
	Origin      string              `json:"origin"`
	// Of the message; absent where it could not be read.
	BuyerID     string `json:"buyerId,omitzero"`
	Name        string `json:"name,omitzero"`
	PhoneNumber string `json:"phoneNumber,omitzero"`
	Quantity    int64  `json:"quantity,omitzero"`
	// Of the sale; absent where there is none.
	Title    string `json:"title,omitzero"`
	Currency string `json:"currency,omitzero"`
	Amount   *int64 `json:"amount,omitzero"` // needs both
}

// newDeadLetterResponse shows a dead letter with its sale, which is the zero Sale where it is
// unknown.
func (a *api) newDeadLetterResponse(d order.DeadLetter, sale seckill.Sale) deadLetterResponse {
	shown := deadLetterResponse{
		ID: d.ID, OrderSn: d.OrderSn, GoodsID: d.GoodsID, Reason: d.Reason, Attempts: d.Attempts,
		FirstSeenAt: timestamp(d.FirstSeenAt), Origin: d.Origin,
	}
	line, readable := d.Line()
	if readable {
		phone, _ := a.openContact(order.Order{OrderLine: line})
		shown.BuyerID, shown.Quantity = line.BuyerID, line.Quantity
		shown.Name, shown.PhoneNumber = maskName(line.Name), maskPhone(phone)
	}
	if sale.GoodsID != 0 {
		shown.Title = sale.Title
		shown.Currency = a.currency(sale.Details)
	}
	if amount := line.Quantity * sale.Price; readable && sale.GoodsID != 0 {
		shown.Amount = &amount
	}
	return shown
}

// listDeadLetters is GET /admin/dead-letters.
func (a *api) listDeadLetters(ctx context.Context, r *request) (response, error) {
	limit, after := r.limit(), r.cursor(deadLetterCursor, isUUID)
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	found, err := a.DeadLetters.List(ctx, after, limit+1)
	if err != nil {
		return response{}, err
	}
	sales := make(map[int64]seckill.Sale) // most dead letters of a page are of few sales
	for _, d := range found {
		if _, known := sales[d.GoodsID]; known {
			continue
		}
		sale, err := a.Sales.Get(ctx, r.actor, d.GoodsID)
		if err != nil && apierror.ReasonOf(err) != apierror.NotFound {
			return response{}, err
		}
		sales[d.GoodsID] = sale
	}
	show := func(d order.DeadLetter) deadLetterResponse {
		return a.newDeadLetterResponse(d, sales[d.GoodsID])
	}
	key := func(d order.DeadLetter) string { return deadLetterCursor + d.ID }
	return ok(page(found, limit, show, key)), nil
}

// requeueDeadLetter is POST /admin/dead-letters/{id}/requeue: the service reserves the units again
// and writes the order. The response masks the buyer's data, because the operator is no party of
// the order.
func (a *api) requeueDeadLetter(ctx context.Context, r *request) (response, error) {
	id, err := a.deadLetterID(ctx, r)
	if err != nil {
		return response{}, err
	}
	o, err := a.DeadLetters.Requeue(ctx, r.actor, id)
	return ok(a.newMaskedOrderResponse(ctx, o)), err
}

// discardDeadLetter is DELETE /admin/dead-letters/{id}. The order keeps the status failed.
func (a *api) discardDeadLetter(ctx context.Context, r *request) (response, error) {
	id, err := a.deadLetterID(ctx, r)
	if err != nil {
		return response{}, err
	}
	return ok(nil), a.DeadLetters.Discard(ctx, r.actor, id)
}

// deadLetterID takes the id of a call for operators only, and calls permit. An id of another form
// names no dead letter.
func (a *api) deadLetterID(ctx context.Context, r *request) (string, error) {
	id := r.Raw("id")
	if !isUUID(id) {
		return "", apierror.New(apierror.NotFound, "there is no such dead letter")
	}
	return id, r.permit(ctx, func() error { return errorOnly(a.DeadLetters.Find(ctx, id)) })
}
