package apicheck

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"

	"flashsale.dev/seckill/api"
)

// Document is the parsed and validated OpenAPI document.
type Document struct {
	doc     *openapi3.T
	plain   *openapi3.T // doc under OpenAPI 3.0, for parameters and headers
	calls   []call
	schemas *schemas
}

// call is a path of the document, split at its slashes.
type call struct {
	path     string
	segments []string
	item     *openapi3.PathItem
}

// Load returns the document of api/openapi.yaml. All tests of a process share it, because load is
// slow.
var Load = sync.OnceValues(load) //nolint:gochecknoglobals // a cache of what does not change

// load reads and validates the document: its structure, its references and each example against its
// schema.
func load() (*Document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		return nil, fmt.Errorf("validate openapi.yaml: %w", err)
	}
	schemas, err := newSchemas(doc)
	if err != nil {
		return nil, err
	}
	plain := *doc
	plain.OpenAPI = "3.0.3"
	if err := requirePlain(doc); err != nil {
		return nil, fmt.Errorf("a parameter or a header is not of OpenAPI 3.0: %w", err)
	}
	d := &Document{doc: doc, plain: &plain, schemas: schemas}
	for path, item := range doc.Paths.Map() {
		d.calls = append(d.calls,
			call{path: path, segments: strings.Split(path[1:], "/"), item: item})
	}
	slices.SortFunc(d.calls, mostLiteral)
	return d, nil
}

// requirePlain rejects OpenAPI 3.1 keywords in parameters and headers. Check validates these under
// OpenAPI 3.0, which ignores such keywords. Under 3.1 kin-openapi compiles a schema for each value,
// which took half of a rush's time.
func requirePlain(doc *openapi3.T) error {
	var all []*openapi3.SchemaRef
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, p := range slices.Concat(item.Parameters, operation.Parameters) {
				all = append(all, p.Value.Schema)
			}
			for _, response := range operation.Responses.Map() {
				for _, header := range response.Value.Headers {
					all = append(all, header.Value.Schema)
				}
			}
		}
	}
	for _, schema := range all {
		if schema == nil {
			continue
		}
		if err := schema.Validate(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// mostLiteral sorts /orders/{orderSn} before /{randomPath}/decrStock, as the router does. The
// router prefers a literal segment to a parameter.
func mostLiteral(a, b call) int {
	for i := range min(len(a.segments), len(b.segments)) {
		if va, vb := isParameter(a.segments[i]), isParameter(b.segments[i]); va != vb {
			if va {
				return 1
			}
			return -1
		}
	}
	return strings.Compare(a.path, b.path)
}

// Page reports whether a path belongs to the web pages or their assets. These paths are outside the
// API and the document. Add new pages here. /session also serves the pages, but it is part of the
// API.
func Page(path string) bool {
	return path == "/" || path == "/session/callback" || path == "/console" ||
		strings.HasPrefix(path, "/s/") || strings.HasPrefix(path, "/o/") ||
		strings.HasPrefix(path, "/console/") ||
		strings.HasPrefix(path, "/assets/")
}

func isParameter(segment string) bool { return strings.HasPrefix(segment, "{") }

// Call is one call of the document.
type Call struct {
	Method, Path string // the path as the document has it
	Operation    *openapi3.Operation
}

// Calls returns the document's calls by their operationId.
func (d *Document) Calls() map[string]Call {
	all := map[string]Call{}
	for _, c := range d.calls {
		for method, operation := range c.item.Operations() {
			all[operation.OperationID] = Call{method, c.path, operation}
		}
	}
	return all
}

// OperationID returns the operationId of a request's call, "" if the document has no such call.
func (d *Document) OperationID(method, path string) string {
	route, _ := d.find(method, path)
	if route == nil {
		return ""
	}
	return route.Operation.OperationID
}

// Fields returns the fields that a request's call has in its query and in its JSON body.
func (d *Document) Fields(method, path string) (query, body []string) {
	route, _ := d.find(method, path)
	if route == nil {
		return nil, nil
	}
	for _, p := range slices.Concat(route.PathItem.Parameters, route.Operation.Parameters) {
		if p.Value.In == openapi3.ParameterInQuery {
			query = append(query, p.Value.Name)
		}
	}
	if b := route.Operation.RequestBody; b != nil {
		schema := b.Value.Content["application/json"].Schema.Value
		body = slices.Sorted(maps.Keys(schema.Properties))
	}
	return query, body
}

// find returns the document's call for a request and its path parameters. It returns nil if the
// document has no such call.
func (d *Document) find(method, path string) (*routers.Route, map[string]string) {
	if method == http.MethodHead { // every GET route also answers HEAD
		method = http.MethodGet
	}
	for _, c := range d.calls {
		params, fits := c.match(path)
		if !fits {
			continue
		}
		if op := c.item.GetOperation(method); op != nil {
			return &routers.Route{
				Spec: d.plain, Path: c.path, PathItem: c.item, Method: method, Operation: op,
			}, params
		}
	}
	return nil, nil
}

// match returns a path's parameters. A limiter's key is the last parameter and may contain slashes.
func (c call) match(path string) (map[string]string, bool) {
	relative, cut := strings.CutPrefix(path, "/")
	if !cut {
		return nil, false
	}
	limit := -1
	if c.segments[len(c.segments)-1] == "{key}" {
		limit = len(c.segments)
	}
	parts := strings.SplitN(relative, "/", limit)
	if len(parts) != len(c.segments) {
		return nil, false
	}
	params := map[string]string{}
	for i, segment := range c.segments {
		switch {
		case parts[i] == "" && segment != "{key}": // an empty key is a malformed key
			return nil, false
		case isParameter(segment):
			params[strings.Trim(segment, "{}")] = parts[i]
		case segment != parts[i]:
			return nil, false
		}
	}
	return params, true
}
