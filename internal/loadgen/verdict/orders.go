package verdict

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"flashsale.dev/seckill/client"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// listedOrder is the compared part of an order in a list. It has no name and no phone number,
// because the report prints an order that differs.
type listedOrder struct {
	OrderSn  string `json:"orderSn"`
	Status   string `json:"status"`
	GoodsID  string `json:"goodsId"`
	BuyerID  string `json:"buyerId"`
	Quantity int64  `json:"quantity"`

	ClosedAt time.Time `json:"closedAt"` // zero while it is active
}

// active is the number of units that the order holds of the stock. The units of cancelled and
// expired orders are back on sale; failed orders have none.
func (o listedOrder) active() int64 {
	if o.Status == "created" || o.Status == "paid" {
		return o.Quantity
	}
	return 0
}

// ofSale lists the orders of a sale.
func ofSale(ctx context.Context, c apiclient.Client, goodsID string) listCall {
	return func(limit int, cursor *string) (*http.Response, error) {
		return c.API().ListOrdersOfSale(ctx, goodsID,
			&client.ListOrdersOfSaleParams{Limit: &limit, Cursor: cursor})
	}
}

// ofBuyer lists a buyer's own orders.
func ofBuyer(ctx context.Context, c apiclient.Client) listCall {
	return func(limit int, cursor *string) (*http.Response, error) {
		return c.API().ListMyOrders(ctx, &client.ListMyOrdersParams{Limit: &limit, Cursor: cursor})
	}
}

// listCall requests one page of orders.
type listCall func(limit int, cursor *string) (*http.Response, error)

// orders reads all pages of a list, restricted to one goods if goodsID is not empty.
func orders(ctx context.Context, list listCall, goodsID string) ([]listedOrder, error) {
	var all []listedOrder
	for cursor := (*string)(nil); ; {
		a, err := readWithRetry(ctx, func() (*http.Response, error) { return list(100, cursor) })
		if err != nil {
			return nil, err
		}
		var page struct {
			Items      []listedOrder `json:"items"`
			NextCursor *string       `json:"nextCursor"`
		}
		if err := a.Into(&page); err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			if goodsID == "" || o.GoodsID == goodsID {
				all = append(all, o)
			}
		}
		if page.NextCursor == nil {
			return all, nil
		}
		cursor = page.NextCursor
	}
}

// pauseBetween is the wait before a failed read is repeated.
const pauseBetween = 50 * time.Millisecond

// readWithRetry repeats a call that reads after 429, 5xx and connection errors until ctx ends. The
// API may still be busy with the load that has just ended. The error has the API's last answer.
func readWithRetry(
	ctx context.Context, call func() (*http.Response, error),
) (apiclient.Answer, error) {
	for refusal := error(nil); ; {
		a, err := apiclient.Read(call())
		if err == nil && a.Status != http.StatusTooManyRequests && a.Status < 500 {
			return a, nil
		}
		if err == nil {
			refusal = a.Into(nil)
		}
		if ended := apiclient.Sleep(ctx, max(a.RetryAfter, pauseBetween)); ended != nil {
			return a, fmt.Errorf("%w: %w", ended, cmp.Or(refusal, err))
		}
	}
}
