// Package client calls the HTTP API of a flash sale. It is generated from api/openapi.yaml.
//
//	c, err := client.NewClientWithResponses("https://sale.example", client.WithBearer(token))
//	path, err := c.IssuePathWithResponse(ctx, &client.IssuePathParams{GoodsID: &goods})
//	// path.JSON200 is set if the API answered 200, path.JSON409 if the sale refuses, and so on.
//	order, err := c.DecrStockWithResponse(ctx, path.JSON200.Data.RandomPath,
//		&client.DecrStockParams{GoodsID: &goods})
//
// An error means that no answer arrived or that it could not be decoded; the outcome is then
// unknown. Repeat a purchase with the same path: it takes no units twice. A client may be used by
// many goroutines. It sets no deadline of its own: each call ends with its context.
//
// cmd/loadtest calls the API with it, except in the buyers' measured loop (see
// internal/loadgen/apiclient). seckillctl calls no API: it works on the servers, also while no API
// runs.
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

// WithBearer sends a token with each request.
func WithBearer(token string) ClientOption {
	return WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	})
}

// RetryAfter is the seconds of a header Retry-After. The API sends seconds. The date of a proxy
// counts from now. It is 0 if the header has neither, and at most the largest int32.
type RetryAfter int32

// UnmarshalText reads the header's value.
func (r *RetryAfter) UnmarshalText(text []byte) error {
	seconds, _ := strconv.ParseInt(string(text), 10, 32) // out of range: the nearest int32
	if at, err := http.ParseTime(string(text)); err == nil {
		seconds = int64(min(math.Ceil(time.Until(at).Seconds()), math.MaxInt32))
	}
	*r = RetryAfter(max(0, seconds))
	return nil
}
