package verdict

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// orderLine is an order in a list, as far as it is compared.
type orderLine struct {
	OrderSn  string `json:"orderSn"`
	Status   string `json:"status"`
	GoodsID  string `json:"goodsId"`
	BuyerID  string `json:"buyerId"`
	Quantity int64  `json:"quantity"`
}

// active is how many units it takes from the stock.
func (o orderLine) active() int64 {
	if o.Status == "created" || o.Status == "paid" {
		return o.Quantity
	}
	return 0
}

// orders reads a whole list of orders, of one goods where it is named.
func orders(ctx context.Context, c apiclient.Client, path, goodsID string) ([]orderLine, error) {
	var all []orderLine
	for cursor := ""; ; {
		a, err := insist(ctx, c, path+"?limit=100"+cursor)
		if err != nil {
			return nil, err
		}
		var page struct {
			Items      []orderLine `json:"items"`
			NextCursor *string     `json:"nextCursor"`
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
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
}

// insist reads until there is an answer that is neither "later" nor a fault, or ctx ends.
func insist(ctx context.Context, c apiclient.Client, path string) (apiclient.Answer, error) {
	for {
		a, err := c.Call(ctx, http.MethodGet, path, nil)
		if err == nil && a.Status != http.StatusTooManyRequests && a.Status < 500 {
			return a, nil
		}
		select {
		case <-time.After(max(a.RetryAfter, pauseBetween)):
		case <-ctx.Done():
			return a, errors.Join(err, ctx.Err())
		}
	}
}
