package httpapi

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/shipping"
	"flashsale.dev/seckill/internal/seckill"
)

const (
	maxCarrier        = 64
	maxTrackingNumber = 128
)

// findManagedOrder is GET /admin/orders: the order with a number, or with the short number that its
// buyer sees, as a list. The list is empty if no sale of the actor has this order. Name and phone
// number are masked. Only this call reads refunds and disputes.
func (a *api) findManagedOrder(ctx context.Context, r *request) (response, error) {
	sn := r.Text("orderSn")
	if !isOrderSn(sn) {
		r.Reject("orderSn", "must be an order number")
	}
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	var orders []order.Order
	var err error
	if end, short := shortSn(sn); short {
		orders, err = a.Orders.FindManagedByEnd(ctx, r.actor, end)
	} else {
		orders = make([]order.Order, 1)
		orders[0], err = a.Orders.FindManaged(ctx, r.actor, sn)
	}
	found := list[orderResponse]{Items: []orderResponse{}}
	switch reason := apierror.ReasonOf(err); {
	case reason == apierror.NotFound, reason == apierror.Forbidden:
		return ok(found), nil
	case err != nil:
		return response{}, err
	}
	for _, o := range orders {
		reversals, err := a.Payments.Reversals(ctx, o.GoodsID, o.OrderSn)
		if err != nil {
			return response{}, err
		}
		shown := a.newMaskedOrderResponse(ctx, o)
		shown.Reversals = newReversalResponses(reversals)
		found.Items = append(found.Items, shown)
	}
	return ok(found), nil
}

// shortSn returns the end of an order number that a short number names: "AbCd-1234" or "AbCd1234".
// Whole numbers are longer.
func shortSn(text string) (end string, short bool) {
	if len(text) == 9 && text[4] == '-' {
		text = text[:4] + text[5:]
	}
	return text, len(text) == 8 && !strings.Contains(text, "-")
}

// withManagedOrder returns the handler that runs a step on an order of a merchant's sale.
func (a *api) withManagedOrder(step orderStep) handleFunc {
	return func(ctx context.Context, r *request) (response, error) {
		o, err := runOrderStep(ctx, r, a.Orders.FindManaged, step)
		return ok(a.newMaskedOrderResponse(ctx, o)), err
	}
}

// shipOrder is POST /admin/orders/{orderSn}/ship.
func (a *api) shipOrder(ctx context.Context, r *request) (response, error) {
	shipment := order.Shipment{
		Carrier:        shortText(r.Fields, "carrier", 1, maxCarrier),
		TrackingNumber: shortText(r.Fields, "trackingNumber", 0, maxTrackingNumber),
	}
	if err := r.Err(); err != nil {
		return response{}, err
	}
	return a.withManagedOrder(
		func(ctx context.Context, by seckill.Actor, sn string) (order.Order, error) {
			return a.Shipping.Ship(ctx, by, sn, shipment)
		})(ctx, r)
}

// shortText takes a text of low to high characters; one of 0 may be absent.
func shortText(p *params.Fields, name string, low, high int) string {
	if low == 0 && !p.Has(name) {
		return ""
	}
	text := p.Text(name)
	n := utf8.RuneCountInString(text)
	if n < low || n > high || strings.ContainsFunc(text, unicode.IsControl) {
		p.Reject(name, "must have %d to %d characters, without control characters", low, high)
	}
	return text
}

// revealOrder is POST /admin/orders/{orderSn}/reveal: the order with its buyer's data, which the
// audit log records.
func (a *api) revealOrder(ctx context.Context, r *request) (response, error) {
	o, err := runOrderStep(ctx, r, a.Orders.FindManaged, a.Shipping.Reveal)
	return ok(a.newWholeOrderResponse(ctx, o)), err
}

// setAddress is PUT /orders/{orderSn}/shipping.
func (a *api) setAddress(ctx context.Context, r *request) (response, error) {
	text := func(name string) string { return textOr(r.Fields, name) }
	address := shipping.Address{
		Name: text("name"), Phone: text("phone"), Email: text("email"), Line1: text("line1"),
		Line2: text("line2"), City: text("city"), PostalCode: text("postalCode"),
		Country: text("country"), Note: text("note"),
	}
	if err := r.Check(address.Validate()); err != nil {
		return response{}, err
	}
	o, err := runOrderStep(ctx, r, a.Orders.Find,
		func(ctx context.Context, by seckill.Actor, sn string) (order.Order, error) {
			return a.Shipping.SetAddress(ctx, by, sn, address)
		})
	return ok(a.newWholeOrderResponse(ctx, o)), err
}
