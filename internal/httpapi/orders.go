package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/order/shipping"
	"flashsale.dev/seckill/internal/seckill"
)

// orderResponse is an order as its buyer and its merchant see it.
type orderResponse struct {
	OrderSn       string              `json:"orderSn"`
	Status        order.Status        `json:"status"`
	FailureReason order.FailureReason `json:"failureReason,omitzero"`
	GoodsID       int64               `json:"goodsId,string"`
	BuyerID       string              `json:"buyerId"`
	Quantity      int64               `json:"quantity"`
	Amount        int64               `json:"amount"`
	Name          string              `json:"name"`
	PhoneNumber   string              `json:"phoneNumber"`
	Email         string              `json:"email,omitzero"`
	CreatedAt     timestamp           `json:"createdAt,omitzero"`
	PayBy         timestamp           `json:"payBy,omitzero"`
	PaidAt        timestamp           `json:"paidAt,omitzero"`
	ClosedAt      timestamp           `json:"closedAt,omitzero"`
	CheckoutURL   string              `json:"checkoutUrl,omitzero"`
	Currency      string              `json:"currency,omitzero"` // absent until it is written

	ShippedAt      timestamp         `json:"shippedAt,omitzero"`
	Carrier        string            `json:"carrier,omitzero"`
	TrackingNumber string            `json:"trackingNumber,omitzero"`
	Shipping       *shipping.Address `json:"shipping,omitzero"`

	Reversals []reversalResponse `json:"reversals,omitempty"` // where a merchant finds one order
}

func (a *api) newOrderResponse(ctx context.Context, o order.Order) orderResponse {
	if o.Status != order.Created {
		o.CheckoutURL = "" // the page is about to end, or has taken the money
	}
	phone, email := a.openContact(o)
	currency := ""
	if o.Status != order.Queued {
		currency = a.currencyOf(ctx, o.GoodsID)
	}
	return orderResponse{
		OrderSn: o.OrderSn, Status: o.Status, FailureReason: o.FailureReason, GoodsID: o.GoodsID,
		BuyerID: o.BuyerID, Quantity: o.Quantity, Amount: o.Amount, Name: o.Name,
		PhoneNumber: phone, Email: email, CreatedAt: timestamp(o.CreatedAt), PayBy: timestamp(o.PayBy),
		PaidAt: timestamp(o.PaidAt), ClosedAt: timestamp(o.ClosedAt), CheckoutURL: o.CheckoutURL,
		Currency:  currency,
		ShippedAt: timestamp(o.ShippedAt), Carrier: o.Carrier, TrackingNumber: o.TrackingNumber,
	}
}

// newWholeOrderResponse has the address too.
func (a *api) newWholeOrderResponse(ctx context.Context, o order.Order) orderResponse {
	shown := a.newOrderResponse(ctx, o)
	shown.Shipping = a.openAddress(o)
	return shown
}

// newMaskedOrderResponse is for lists, which hide most of a name, a phone number and an address.
func (a *api) newMaskedOrderResponse(ctx context.Context, o order.Order) orderResponse {
	shown := a.newOrderResponse(ctx, o)
	shown.Name, shown.PhoneNumber = maskName(shown.Name), maskPhone(shown.PhoneNumber)
	shown.Email = maskEmail(shown.Email)
	return shown
}

// masked returns newMaskedOrderResponse for page.
func (a *api) masked(ctx context.Context) func(order.Order) orderResponse {
	return func(o order.Order) orderResponse { return a.newMaskedOrderResponse(ctx, o) }
}

// currencyOf returns the currency of a sale with written orders, which never changes. It is "" if
// the sale can't be read, because the order is more important, and for the id 0, which no sale has.
func (a *api) currencyOf(ctx context.Context, goodsID int64) string {
	if goodsID == 0 {
		return ""
	}
	code, _ := a.currencies.Get(ctx, goodsID, func(ctx context.Context) (string, error) {
		sale, err := a.Sales.Get(ctx, seckill.Actor{Role: seckill.Operator}, goodsID)
		return a.currency(sale.Details), err
	})
	return code
}

// maskName keeps the first character, so that a list still shows which orders have a name.
func maskName(s string) string {
	if s == "" {
		return ""
	}
	_, size := utf8.DecodeRuneInString(s)
	return s[:size] + "***"
}

// maskPhone keeps the last four characters, and none of a number with eight or fewer.
func maskPhone(s string) string {
	runes := []rune(s)
	if len(runes) <= 8 {
		return strings.Repeat("*", len(runes))
	}
	return strings.Repeat("*", len(runes)-4) + string(runes[len(runes)-4:])
}

// maskEmail masks the mailbox as maskName does, and keeps the domain.
func maskEmail(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return maskName(s)
	}
	return maskName(s[:at]) + s[at:]
}

type orderStep func(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error)

// withOrder returns the handler that runs a step on the order that a buyer names.
func (a *api) withOrder(step orderStep) handleFunc {
	return func(ctx context.Context, r *request) (response, error) {
		o, err := runOrderStep(ctx, r, a.Orders.Find, step)
		return ok(a.newWholeOrderResponse(ctx, o)), err
	}
}

// runOrderStep runs step on the order that a request names, and returns the order as step left it.
// If permit refuses, it calls find: a missing order, and one that is not the caller's, come before
// the limit. A permitted request needs no find, because step finds the order itself.
func runOrderStep(ctx context.Context, r *request, find, step orderStep) (order.Order, error) {
	sn := r.Raw("orderSn")
	if !isOrderSn(sn) {
		return order.Order{}, query.NewNoSuchOrder()
	}
	err := r.permit(ctx, func() error { return errorOnly(find(ctx, r.actor, sn)) })
	if err != nil {
		return order.Order{}, err
	}
	return step(ctx, r.actor, sn)
}

// myOrders is GET /orders: the orders of the calling buyer. It masks names and phone numbers like
// every list, because other people more often see a list than one order.
func (a *api) myOrders(ctx context.Context, r *request) (response, error) {
	limit, before := r.limit(), r.cursor(orderCursor, isOrderSn)
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	found, err := a.Orders.Mine(ctx, r.actor, before, limit+1)
	return ok(a.orderPage(ctx, found, limit)), err
}

// ordersOfSale is GET /admin/sales/{goodsId}/orders, as a page of JSON or as a whole CSV
// file. The first page of a file is read before the response begins, so that an error can
// still have a status. The audit log records a file before it begins; HEAD has no rows.
func (a *api) ordersOfSale(ctx context.Context, r *request) (response, error) {
	limit, before := r.limit(), r.cursor(orderCursor, isOrderSn)
	status, csv := statusOrAll(r.Fields), wantsCSV(r)
	id, err := a.managedGoodsID(ctx, r)
	if err != nil {
		return response{}, err
	}
	if csv {
		limit = exportPage - 1
	}
	found, err := a.Orders.OfGoods(ctx, r.actor, id, status, before, limit+1)
	if csv && err == nil {
		sale, err := a.Sales.Get(ctx, r.actor, id)
		if err == nil && r.gin.Request.Method != http.MethodHead {
			err = a.Shipping.RecordExport(ctx, r.actor, id)
		}
		return a.exportOrders(r, sale, status, found), err
	}
	return ok(a.orderPage(ctx, found, limit)), err
}

// orderPage is a page of a list of orders, newest first. Pages follow the order numbers, which have
// the times of their paths. A path may be used a minute later than a newer one, so the orders of a
// page are sorted by their own times.
func (a *api) orderPage(
	ctx context.Context, found []order.Order, limit int,
) list[orderResponse] {
	p := page(found, limit, a.masked(ctx), orderKey)
	slices.SortStableFunc(p.Items, func(x, y orderResponse) int {
		return time.Time(y.CreatedAt).Compare(time.Time(x.CreatedAt))
	})
	return p
}

// statusOrAll takes the filter of a list; "" is all.
func statusOrAll(p *params.Fields) order.Status {
	return params.OneOf(p, "status", "", order.Statuses()...)
}

func orderKey(o order.Order) string { return orderCursor + o.OrderSn }

// isOrderSn reports whether a string has an order number's form: 1 to 64 of [0-9A-Za-z-].
func isOrderSn(s string) bool {
	invalid := func(r rune) bool { return r == '.' || r == '_' || isInvalidIDRune(r) }
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, invalid)
}
