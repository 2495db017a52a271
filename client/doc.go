// Package client calls the HTTP API of a flash sale. It is generated from api/openapi.yaml.
//
//	c, err := client.NewClientWithResponses("https://sale.example", client.WithBearer(token))
//	if err != nil {
//		return err
//	}
//	path, err := c.IssuePathWithResponse(ctx, &client.IssuePathParams{GoodsID: &goods})
//	if err != nil {
//		return err
//	}
//	if path.JSON200 == nil { // path.JSON409 is set if the sale refuses, and so on
//		return fmt.Errorf("%s: %s", path.Status(), path.Body)
//	}
//	order, err := c.DecrStockWithResponse(ctx, path.JSON200.Data.RandomPath,
//		&client.DecrStockParams{GoodsID: &goods})
//
// An error means that no answer arrived or that it could not be decoded; the outcome is then
// unknown. Repeat a purchase with the same path: it takes no units twice. An answer that is not
// JSON, such as the page of a proxy, sets none of the fields JSON200, JSON409 and so on; StatusCode
// and Body have it. The methods without WithResponse return the http.Response.
//
// A client may be used by many goroutines. It sets no deadline of its own: each call ends with its
// context. The caller decides about retries.
//
// Start the address with https where a proxy redirects http. net/http follows a redirect 301, 302
// or 303 of any call with a GET. The answer of that GET can look like a success: a PATCH then
// returns the sale without the change. An http.Client with a CheckRedirect that returns
// http.ErrUseLastResponse follows no redirect; set it by WithHTTPClient.
//
// cmd/loadtest calls the API with it, except in the buyers' measured loop (see
// internal/loadgen/apiclient). seckillctl calls none of these calls: it works on the servers, also
// while no API runs.
//
// The pages, the probes, the event streams and the calls of a payment provider are not part of it.
package client

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"
)

//go:generate go tool -modfile=../tools/go.mod oapi-codegen -config gen.yaml -o client.gen.go ../api/openapi.yaml
//go:generate go run ./typescript/generate ../api/openapi.yaml typescript/api.ts

// WithBearer sends a token or an API key as the bearer token of each request.
func WithBearer(token string) ClientOption {
	return WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	})
}

// RetryAfter is the value of a header Retry-After in seconds. The API sends seconds. A proxy may
// send a date, which becomes the seconds from now. Any other value becomes 0. It is at most the
// largest int32.
type RetryAfter int32

// UnmarshalText reads the header's value and never fails, so that no answer is lost for a header.
func (r *RetryAfter) UnmarshalText(text []byte) error {
	seconds, _ := strconv.ParseInt(string(text), 10, 32) // out of range: the nearest int32
	if at, err := http.ParseTime(string(text)); err == nil {
		seconds = int64(min(math.Ceil(time.Until(at).Seconds()), math.MaxInt32))
	}
	*r = RetryAfter(max(0, seconds))
	return nil
}
