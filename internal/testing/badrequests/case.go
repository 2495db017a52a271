package badrequests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

// Fixture is the state that the cases need: two goods and an order, with their owners.
type Fixture struct {
	Secret        []byte        // the server's SECKILL_JWT_SECRET
	PaymentSecret []byte        // the server's SECKILL_PAYMENT_SECRET
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
	Reason apierror.Reason // expected, as are Status and Field
	Status int
	Field  string // data.field of a BAD_REQUEST, else ""
}

// Check sends a case to the server at baseURL, such as "http://127.0.0.1:8080". Its error joins all
// differences from the expected response. client must not follow redirects. It must check each
// round trip against the OpenAPI document, as apicheck.Client does: Check compares values only.
func Check(ctx context.Context, client *http.Client, baseURL string, c Case) error {
	req, err := http.NewRequestWithContext(ctx, c.Method, baseURL+c.Target,
		strings.NewReader(c.Body))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	maps.Copy(req.Header, c.Header)
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = c.judge(res, body)
	}
	if err != nil {
		return fmt.Errorf("%s: %s %.120s: %w; answered %d %.300s", c.Name, c.Method, c.Target, err,
			res.StatusCode, body)
	}
	return nil
}

func (c Case) judge(res *http.Response, body []byte) error {
	if c.Method == http.MethodHead {
		return same("status", res.StatusCode, c.Status)
	}
	var a struct {
		Code      int
		Reason    apierror.Reason
		Data      struct{ Field string }
		RequestID string
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	return errors.Join(same("status", res.StatusCode, c.Status), same("code", a.Code, c.Status),
		same("reason", a.Reason, c.Reason), same("data.field", a.Data.Field, c.Field),
		same("requestId", a.RequestID, res.Header.Get("X-Request-ID")))
}

func same[T comparable](what string, got, want T) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s is %v, want %v", what, got, want)
}
