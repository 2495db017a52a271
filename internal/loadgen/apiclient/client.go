package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"flashsale.dev/seckill/client"
	"flashsale.dev/seckill/internal/workers"
)

// maxBody bounds the bytes that are read of an answer.
const maxBody = 1 << 20

// Client calls an API as one user. Clients of many users share one HTTP client.
type Client struct {
	Base  string // http://host:port
	Token string
	HTTP  *http.Client
}

// Answer is an answer in the API's common shape, with its status.
type Answer struct {
	Status     int
	Reason     string          `json:"reason"`
	Message    string          `json:"message"`
	Data       json.RawMessage `json:"data"`
	RetryAfter time.Duration   // of the header; 0 without one
}

// Call makes one call and reads its answer; body may be nil. An answer without the API's common
// shape is an error. A refusal is not: the answer holds its status and reason.
func (c Client) Call(ctx context.Context, method, path string, body any) (Answer, error) {
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return Answer{}, fmt.Errorf("encode a request: %w", err)
		}
		text = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, text)
	if err != nil {
		return Answer{}, fmt.Errorf("make a request: %w", err)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("call %s %s: %w", method, path, err)
	}
	return read(resp)
}

// API returns the generated client of the same API. Merchants' calls and those of the verdict use
// it; Read returns their answers. Buyers' measured calls use Call, because hostile buyers send what
// the document does not allow, and all judge answers by their reason. The generated client also
// makes a fifth more allocations for each call.
func (c Client) API() *client.Client {
	return &client.Client{
		Server: c.Base + "/", Client: c.HTTP,
		RequestEditors: []client.RequestEditorFn{
			func(_ context.Context, r *http.Request) error {
				if c.Token != "" {
					r.Header.Set("Authorization", "Bearer "+c.Token)
				}
				return nil
			},
		},
	}
}

// Read reads the answer of a generated call.
func Read(resp *http.Response, err error) (Answer, error) {
	if err != nil {
		return Answer{}, fmt.Errorf("call the API: %w", err)
	}
	return read(resp)
}

// ReadInto reads the answer of a generated call into data. An answer that is not a success is an
// error with the call's name.
func ReadInto(call string, data any) func(*http.Response, error) error {
	return func(resp *http.Response, err error) error {
		a, err := Read(resp, err)
		if err == nil {
			err = a.Into(data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", call, err)
		}
		return nil
	}
}

// read decodes an answer. A body of another shape, such as a proxy's error page, is an error that
// keeps the status. A load test must not count a proxy's answer for a dead API as the API's own.
func read(resp *http.Response) (Answer, error) {
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return Answer{}, fmt.Errorf("read an answer: %w", err)
	}
	a := Answer{Status: resp.StatusCode}
	if err := json.Unmarshal(text, &a); err != nil || a.Reason == "" {
		return a, fmt.Errorf("status %d with an unknown body: %.200q", resp.StatusCode, text)
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		a.RetryAfter = time.Duration(s) * time.Second
	}
	return a, nil
}

// Into decodes the answer's data; nil ignores it. A status of 300 or more is an error.
func (a Answer) Into(data any) error {
	if a.Status >= 300 {
		return fmt.Errorf("status %d %s: %s", a.Status, a.Reason, a.Message)
	}
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(a.Data, data); err != nil {
		return fmt.Errorf("read an answer's data: %w", err)
	}
	return nil
}

// Do makes a call that must succeed and decodes its data.
func (c Client) Do(ctx context.Context, method, path string, body, data any) error {
	a, err := c.Call(ctx, method, path, body)
	if err == nil {
		err = a.Into(data)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// NewSale is the body of POST /admin/sales. Price is in the currency's smallest unit. The types
// repeat the contract instead of using the API's own, so that a changed field breaks a load test as
// it breaks a client.
type NewSale struct {
	Title         string    `json:"title"`
	Price         int64     `json:"price"`
	Stock         int64     `json:"stock"`
	StartAt       time.Time `json:"startAt"`
	EndAt         time.Time `json:"endAt"`
	PerBuyerLimit int64     `json:"perBuyerLimit,omitempty"`
	Admission     string    `json:"admission,omitempty"`  // "": rate
	AccessCode    string    `json:"accessCode,omitempty"` // "": none
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
	body, err := json.Marshal(n)
	if err == nil {
		err = ReadInto("create a sale", &made)(c.API().CreateSaleWithBody(ctx, nil,
			"application/json", bytes.NewReader(body)))
	}
	if err == nil {
		err = ReadInto("expose a sale", nil)(c.API().ExposeSale(ctx, made.GoodsID))
	}
	return made.GoodsID, err
}

// Ledger reads a sale's ledger.
func (c Client) Ledger(ctx context.Context, goodsID string) (Ledger, error) {
	var l Ledger
	err := ReadInto("read a ledger", &l)(c.API().GetLedger(ctx, goodsID))
	return l, err
}

// Drained polls the ledger until nothing is pending. At the end of ctx it returns the last ledger
// with the error of the last read, nil if that read succeeded. Ledger and orders can be compared
// only then, because pending orders still change both.
func (c Client) Drained(ctx context.Context, goodsID string) (Ledger, error) {
	for {
		l, err := c.Ledger(ctx, goodsID)
		if err == nil && l.Pending == 0 {
			return l, nil
		}
		if Sleep(ctx, 20*time.Millisecond) != nil {
			return l, err
		}
	}
}

// Sleep waits for d; it returns the error of ctx if that ends first. A negative or zero d returns
// at once, so that callers need no check.
func Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		workers.Sleep(ctx, d)
	}
	return ctx.Err()
}
