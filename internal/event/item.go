package event

import (
	"cmp"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// Item is an event as programs get it, from the list and from a webhook.
type Item struct {
	ID        string `json:"id"` // the position in decimal digits
	Type      Type   `json:"type"`
	Timestamp string `json:"timestamp"` // of the change: RFC 3339 in UTC with milliseconds
	GoodsID   string `json:"goodsId"`
	OrderSn   string `json:"orderSn,omitzero"` // "" for an event of the sale
	Data      Data   `json:"data"`
}

// Data is what a program needs to act on an event. The status is the one after the event; the order
// may have changed since. Amounts are in the currency's smallest unit.
type Data struct {
	Status        string              `json:"status"`
	Title         string              `json:"title"`
	ExternalID    string              `json:"externalId,omitzero"` // the merchant's own id
	Currency      string              `json:"currency"`
	Total         *int64              `json:"total,omitzero"` // units offered; of a sale only
	BuyerID       string              `json:"buyerId,omitzero"`
	Quantity      *int64              `json:"quantity,omitzero"`
	Amount        *int64              `json:"amount,omitzero"`
	FailureReason order.FailureReason `json:"failureReason,omitzero"`
}

// TimeFormat is the layout of times in the API and in webhooks: UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// newItem returns the item of an event. currency is that of sales without one of their own.
func newItem(e Event, currency string) Item {
	item := Item{
		ID: strconv.FormatInt(e.Position, 10), Type: e.Type, Timestamp: FormatTime(e.At),
		GoodsID: strconv.FormatInt(e.Sale.GoodsID, 10), OrderSn: e.Order.OrderSn,
		Data: Data{
			Status: e.status(), Title: e.Sale.Title, ExternalID: e.Sale.Details.ExternalID,
			Currency: cmp.Or(e.Sale.Details.Currency, currency),
			BuyerID:  e.Order.BuyerID, // a tombstone may have none
		},
	}
	if e.Order.OrderSn == "" {
		item.Data.Total = &e.Sale.Total
		return item
	}
	item.Data.Quantity, item.Data.Amount = &e.Order.Quantity, &e.Order.Amount
	if e.Type == OrderFailed {
		item.Data.FailureReason = e.Order.FailureReason
	}
	return item
}

// FormatTime returns a time in TimeFormat.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }

// status returns the status that the event's change ended in.
func (e Event) status() string {
	switch e.Type {
	case SaleExposed, SaleSoldOut:
		return string(seckill.Exposed)
	case SaleClosed:
		return string(seckill.Closed)
	case OrderShipped: // a shipped order stays paid
		return string(order.Paid)
	default:
		return string(e.Type[len("order."):])
	}
}
