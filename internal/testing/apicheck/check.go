package apicheck

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// RoundTrip is a request and its response.
type RoundTrip struct {
	Method         string
	URL            *url.URL
	RequestHeader  http.Header
	RequestBody    []byte
	Status         int
	ResponseHeader http.Header
	ResponseBody   []byte // not checked if its media type is not JSON
}

// Check reports the parts of a round trip that the document does not contain. It returns nil if
// there are none.
func (d *Document) Check(x RoundTrip) error {
	if Page(x.URL.Path) {
		return nil
	}
	route, params := d.find(x.Method, x.URL.Path)
	if route == nil {
		return x.explain(d.unknown(x))
	}
	input := &openapi3filter.RequestValidationInput{
		Request: x.request(), PathParams: params, Route: route, QueryParams: x.URL.Query(),
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true,
			ExcludeRequestBody: true,
		},
	}
	if err := d.checkAnswer(x, input); err != nil {
		return x.explain(err)
	}
	// Without a secret the API reads no part of a callback.
	if !x.accepted() || x.Status == http.StatusForbidden && signed(route) {
		return nil
	}
	if err := checkQuery(route, x.URL.Query()); err != nil {
		return x.explain(fmt.Errorf("the request was accepted, and should not have been: %w", err))
	}
	if err := d.checkRequest(input); err != nil {
		return x.explain(fmt.Errorf("the request was accepted, and should not have been: %w", err))
	}
	return nil
}

// checkRequest validates the parameters and then the body, which has keywords of OpenAPI 3.1.
func (d *Document) checkRequest(input *openapi3filter.RequestValidationInput) error {
	ctx := context.Background()
	err := openapi3filter.ValidateRequest(ctx, input)
	body := input.Route.Operation.RequestBody
	if err != nil || body == nil {
		return err
	}
	input.Route.Spec = d.doc
	return openapi3filter.ValidateRequestBody(ctx, input, body.Value)
}

// accepted reports whether the API read the request and found it well-formed. A 404, a 403 or any
// later error proves that too, because the API answers 400 before those.
func (x RoundTrip) accepted() bool {
	return !slices.Contains([]int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusMethodNotAllowed,
	}, x.Status)
}

// signed reports whether a call authenticates its body by signature instead of its caller by token.
func signed(route *routers.Route) bool {
	security := route.Operation.Security
	return security != nil &&
		slices.ContainsFunc(*security, func(r openapi3.SecurityRequirement) bool {
			_, ours := r["paymentSignature"]
			_, providers := r["webhookSignature"]
			return ours || providers
		})
}

// explain adds the round trip to an error.
func (x RoundTrip) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %.200s %.300q answered %d %.600q: not in openapi.yaml: %w", x.Method,
		x.URL, x.RequestBody, x.Status, x.ResponseBody, err)
}

// request returns the round trip's request. A body without a Content-Type gets the one that the
// document prescribes.
func (x RoundTrip) request() *http.Request {
	header := x.RequestHeader.Clone()
	if header == nil {
		header = http.Header{}
	}
	if kind := header.Get("Content-Type"); kind == "" ||
		strings.HasPrefix(kind, "application/x-www-form-urlencoded") &&
			bytes.HasPrefix(x.RequestBody, []byte("{")) {
		header.Set("Content-Type", "application/json")
	}
	method := x.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return &http.Request{
		Method: method, URL: x.URL, Header: header,
		Body:          io.NopCloser(bytes.NewReader(x.RequestBody)),
		ContentLength: int64(len(x.RequestBody)),
	}
}

// checkAnswer validates the response against the document's response for the call and the status.
func (d *Document) checkAnswer(x RoundTrip, input *openapi3filter.RequestValidationInput) error {
	responses := input.Route.Operation.Responses
	status := strconv.Itoa(x.Status)
	found := responses.Status(x.Status)
	if found == nil {
		found, status = responses.Default(), "default"
	}
	if found == nil {
		return fmt.Errorf("the call has no status %d", x.Status)
	}
	if err := checkHeaders(found.Value.Headers, x.ResponseHeader); err != nil {
		return err
	}
	if x.Method == http.MethodHead || len(found.Value.Content) == 0 {
		if len(x.ResponseBody) > 0 {
			return fmt.Errorf("the status %d has no body", x.Status)
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(x.ResponseHeader.Get("Content-Type"))
	if err != nil || found.Value.Content[media] == nil {
		return fmt.Errorf("the status %d has no Content-Type %q", x.Status,
			x.ResponseHeader.Get("Content-Type"))
	}
	if isJSON(media) {
		schema := pointerOf(input.Route, status, media, found)
		if err := d.schemas.check(schema, x.ResponseBody); err != nil {
			return err
		}
	}
	headers := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: x.Status, Header: x.ResponseHeader,
		Options: &openapi3filter.Options{ExcludeResponseBody: true},
	}
	return openapi3filter.ValidateResponse(context.Background(), headers)
}

// isJSON reports whether a media type is one of the API's that are JSON.
func isJSON(media string) bool {
	return media == "application/json" || media == "application/problem+json"
}

// general reports whether a header may be on every answer: the document's introduction names it, or
// it belongs to the protocol or to a proxy.
func general(name string) bool {
	return slices.Contains([]string{
		"Content-Security-Policy", "Ratelimit", "Ratelimit-Policy", "Referrer-Policy",
		"X-Content-Type-Options",
		"Connection", "Content-Length", "Content-Type", "Date", "Server", "X-Accel-Buffering",
	}, name)
}

// checkHeaders returns an error if the response has a header that the document does not list.
func checkHeaders(documented openapi3.Headers, answer http.Header) error {
	names := map[string]bool{}
	for name := range documented {
		names[http.CanonicalHeaderKey(name)] = true
	}
	for name, values := range answer {
		uncached := name == "Cache-Control" && slices.Equal(values, []string{"no-store"})
		if !names[name] && !uncached && !general(name) {
			return fmt.Errorf("the response has the header %s: %q", name, values)
		}
	}
	return nil
}

// unknown checks the response to a request that matches no call of the document: it must be a 404
// or 405 in the shape Unrouted.
func (d *Document) unknown(x RoundTrip) error {
	if x.Status != http.StatusNotFound && x.Status != http.StatusMethodNotAllowed {
		return fmt.Errorf("there is no such call")
	}
	if x.Method == http.MethodHead {
		return nil
	}
	return d.schemas.check("/components/schemas/Unrouted", x.ResponseBody)
}

// checkQuery returns an error if the query has a field that is neither a parameter of the call nor
// a field of its form.
func checkQuery(route *routers.Route, query url.Values) error {
	if lax, _ := route.Operation.Extensions["x-any-query"].(bool); lax {
		return nil
	}
	names := map[string]bool{}
	for _, p := range slices.Concat(route.PathItem.Parameters, route.Operation.Parameters) {
		names[p.Value.Name] = p.Value.In == openapi3.ParameterInQuery
	}
	if body := route.Operation.RequestBody; body != nil {
		// A webhook is JSON only, and has no fields in the query.
		if form := body.Value.Content["application/x-www-form-urlencoded"]; form != nil {
			for name := range form.Schema.Value.Properties {
				names[name] = true
			}
		}
	}
	for name := range query {
		if !names[name] {
			return fmt.Errorf("the query has a field %q", name)
		}
	}
	return nil
}
