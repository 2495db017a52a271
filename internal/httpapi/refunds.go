package httpapi

import (
	"cmp"
	"context"
	"strings"

	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
)

// refundResponse is a payment whose refund is due, for operators.
type refundResponse struct {
	PaymentID string               `json:"paymentId"`
	OrderSn   string               `json:"orderSn"`
	GoodsID   int64                `json:"goodsId,string"`
	Amount    int64                `json:"amount"`
	Currency  string               `json:"currency"`
	Reason    payment.RefundReason `json:"reason"`
	Attempts  int                  `json:"attempts"`
	Stopped   bool                 `json:"stopped"` // no attempt follows without an operator
	Since     timestamp            `json:"since,omitzero"`
	TriedAt   timestamp            `json:"triedAt,omitzero"`
	NextAt    timestamp            `json:"nextAt,omitzero"`
	Problem   string               `json:"problem,omitzero"`
}

func (a *api) newRefundResponse(ctx context.Context, r payment.Refund) refundResponse {
	return refundResponse{
		PaymentID: r.ID, OrderSn: r.OrderSn, GoodsID: r.GoodsID, Amount: r.Amount,
		// A payment in the currency of its order has none of its own.
		Currency: cmp.Or(r.Currency, a.currencyOf(ctx, r.GoodsID)),
		Reason:   r.Reason, Attempts: r.Attempts,
		Stopped: r.Stopped(), Since: timestamp(r.Since), TriedAt: timestamp(r.TriedAt),
		NextAt: timestamp(r.NextAt), Problem: r.Problem,
	}
}

// listRefunds is GET /admin/refunds.
func (a *api) listRefunds(ctx context.Context, r *request) (response, error) {
	limit, after := r.limit(), r.cursor(refundCursor, isPaymentID)
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	found, err := a.Payments.Refunds(ctx, after, limit+1)
	show := func(f payment.Refund) refundResponse { return a.newRefundResponse(ctx, f) }
	key := func(f payment.Refund) string { return refundCursor + f.ID }
	return ok(page(found, limit, show, key)), err
}

// retryRefund is POST /admin/refunds/{paymentId}/retry.
func (a *api) retryRefund(ctx context.Context, r *request) (response, error) {
	return a.changeRefund(ctx, r, a.Payments.RetryRefund)
}

const maxNote = 200

// settleRefund is POST /admin/refunds/{paymentId}/settle.
func (a *api) settleRefund(ctx context.Context, r *request) (response, error) {
	note := shortText(r.Fields, "note", 0, maxNote)
	if err := r.Err(); err != nil {
		return response{}, err
	}
	return a.changeRefund(ctx, r,
		func(ctx context.Context, by seckill.Actor, id string) (payment.Refund, error) {
			return a.Payments.SettleRefund(ctx, by, id, note)
		})
}

// changeRefund changes the refund that an operator names.
func (a *api) changeRefund(
	ctx context.Context, r *request,
	change func(ctx context.Context, by seckill.Actor, paymentID string) (payment.Refund, error),
) (response, error) {
	id := r.Raw("paymentId")
	if !isPaymentID(id) {
		return response{}, payment.ErrNoSuchRefund
	}
	err := r.permit(ctx, func() error { return errorOnly(a.Payments.FindRefund(ctx, id)) })
	if err != nil {
		return response{}, err
	}
	changed, err := change(ctx, r.actor, id)
	return ok(a.newRefundResponse(ctx, changed)), err
}

func isPaymentID(id string) bool {
	return id != "" && len(id) <= payment.MaxPaymentID &&
		!strings.ContainsFunc(id, isInvalidIDRune)
}

// reversalResponse is a refund or a dispute as the payment provider reports it.
type reversalResponse struct {
	ID         string               `json:"id"`
	Kind       payment.ReversalKind `json:"kind"`
	PaymentID  string               `json:"paymentId"`
	Amount     int64                `json:"amount"`
	Currency   string               `json:"currency"`
	State      string               `json:"state"`
	ReportedAt timestamp            `json:"reportedAt"`
}

func newReversalResponses(found []payment.Reversal) []reversalResponse {
	shown := make([]reversalResponse, 0, len(found))
	for _, r := range found {
		shown = append(shown, reversalResponse{
			ID: r.ID, Kind: r.Kind, PaymentID: r.PaymentID, Amount: r.Amount,
			Currency: r.Currency, State: r.State, ReportedAt: timestamp(r.At),
		})
	}
	return shown
}
