package badrequests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/seckill"
)

// Fixture is the state that the cases need: two goods and an order, with their owners.
type Fixture struct {
	Secret        []byte        // the server's SECKILL_JWT_SECRET
	Buyer         seckill.Actor // owns OrderSn and Path
	OtherBuyer    seckill.Actor
	Merchant      seckill.Actor // owns GoodsID and OtherGoods
	OtherMerchant seckill.Actor
	GoodsID       int64  // exposed and ongoing
	OtherGoods    int64  // exposed and ongoing
	NoGoods       int64  // an unused id
	OrderSn       string // an order of GoodsID with the status created
	// Path is an unused path of GoodsID. It must not expire while the cases run. Cases use it for
	// other goods and as another buyer.
	Path string
}

// Case is one request with its expected response.
type Case struct {
	Name   string
	Method string
	Target string // path and query, escaped
	Header http.Header
	Body   string
	Reason seckill.Reason
	Status int
	Field  string // data.field of a BAD_REQUEST
}

// Request returns the case's request to a server, such as "http://127.0.0.1:8080".
func (c Case) Request(ctx context.Context, baseURL string) (*http.Request, error) {
	var body io.Reader
	if c.Body != "" {
		body = strings.NewReader(c.Body)
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, baseURL+c.Target, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	for name, values := range c.Header {
		req.Header[name] = values
	}
	return req, nil
}

// Check sends the case to a server and reports every error in the response, or nil. The client must
// not follow redirects, because the API sends none.
func Check(ctx context.Context, client *http.Client, baseURL string, c Case) error {
	req, err := c.Request(ctx, baseURL)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	if err := c.judge(res, body); err != nil {
		return fmt.Errorf("%s: %s %.120s: %w; answered %d %.300s", c.Name, c.Method, c.Target, err,
			res.StatusCode, body)
	}
	return nil
}

type answer struct {
	Code      *int            `json:"code"`
	Reason    *seckill.Reason `json:"reason"`
	Message   *string         `json:"message"`
	Data      *data           `json:"data"`
	RequestID *string         `json:"requestId"`
}

type data struct {
	Field string `json:"field"`
}

func (c Case) judge(res *http.Response, body []byte) error {
	if c.Method == http.MethodHead {
		return same("status", res.StatusCode, c.Status)
	}
	var a answer
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&a); err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	if a.Code == nil || a.Reason == nil || a.Message == nil || a.Data == nil || a.RequestID == nil {
		return errors.New("a part of the one shape is missing")
	}
	return errors.Join(same("status", res.StatusCode, c.Status), same("code", *a.Code, c.Status),
		same("reason", *a.Reason, c.Reason), same("data.field", a.Data.Field, c.Field),
		same("requestId", *a.RequestID, res.Header.Get("X-Request-ID")),
		same("Content-Type", res.Header.Get("Content-Type"), "application/json; charset=utf-8"))
}

func same[T comparable](what string, got, want T) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s is %v, want %v", what, got, want)
}
