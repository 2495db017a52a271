package apiclient

import (
	"context"
	"time"
)

// NewSale is the body of POST /admin/sales. Price is in the currency's smallest unit.
type NewSale struct {
	Title         string    `json:"title"`
	Price         int64     `json:"price"`
	Stock         int64     `json:"stock"`
	StartAt       time.Time `json:"startAt"`
	EndAt         time.Time `json:"endAt"`
	PerBuyerLimit int64     `json:"perBuyerLimit,omitempty"`
	Rate          *Rate     `json:"rate,omitempty"`
}

// Rate is the sale's limiter of random paths.
type Rate struct {
	PermitsPerSecond float64 `json:"permitsPerSecond"`
	MaxBurstSeconds  float64 `json:"maxBurstSeconds"`
	MaxWaitMillis    int64   `json:"maxWaitMillis"`
}

// Ledger is the answer of GET /admin/sales/{goodsId}/ledger.
type Ledger struct {
	Total     int64 `json:"total"`
	Available int64 `json:"available"`
	Pending   int64 `json:"pending"`
	Sold      int64 `json:"sold"`
	Balanced  bool  `json:"balanced"`
	Epoch     int64 `json:"epoch"`
	Database  struct {
		Stock  int64 `json:"stock"`
		Active int64 `json:"active"`
	} `json:"database"`
}

// PutUp creates and exposes a sale as the merchant of the client's token. It returns the goods id.
func (c Client) PutUp(ctx context.Context, n NewSale) (string, error) {
	var made struct {
		GoodsID string `json:"goodsId"`
	}
	if err := c.Do(ctx, "POST", "/admin/sales", n, &made); err != nil {
		return "", err
	}
	return made.GoodsID, c.Do(ctx, "POST", "/admin/sales/"+made.GoodsID+"/expose", nil, &struct{}{})
}

// Ledger reads a sale's ledger.
func (c Client) Ledger(ctx context.Context, goodsID string) (Ledger, error) {
	var l Ledger
	return l, c.Do(ctx, "GET", "/admin/sales/"+goodsID+"/ledger", nil, &l)
}

// Drained polls the ledger until nothing is pending. At the end of ctx it returns the last ledger
// with the error of the last read, nil if that read succeeded.
func (c Client) Drained(ctx context.Context, goodsID string) (Ledger, error) {
	for {
		l, err := c.Ledger(ctx, goodsID)
		if err == nil && l.Pending == 0 {
			return l, nil
		}
		select {
		case <-ctx.Done():
			return l, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
