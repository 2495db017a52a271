package httpapi

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/seckill"
)

type node = map[string]any

func openAPI(t *testing.T) node {
	t.Helper()
	raw, err := os.ReadFile("../../docs/openapi.yaml")
	require.NoError(t, err)
	var doc node
	require.NoError(t, yaml.Unmarshal(raw, &doc))
	return doc
}

func under(t *testing.T, n node, path ...string) node {
	t.Helper()
	for _, name := range path {
		next, ok := n[name].(node)
		require.True(t, ok, "%v: no %s", path, name)
		n = next
	}
	return n
}

// allRoutes are those of an API that has limiters to be seen.
func allRoutes() []route {
	return (&api{Deps: Deps{Limiters: (*ratelimit.Admin)(nil), Watch: (*order.Watch)(nil), Letters: (*order.Coroner)(nil)}}).routes()
}

// template is a route's path as OpenAPI writes it.
func template(r route) string {
	return regexp.MustCompile(`[:*](\w+)`).ReplaceAllString(r.path, "{$1}")
}

// Each route is in the document and each of the document's is a route.
func TestTheDocumentHasEveryRoute(t *testing.T) {
	var routes, documented []string
	for _, r := range allRoutes() {
		for _, m := range r.methods {
			if m != http.MethodHead {
				routes = append(routes, strings.ToLower(m)+" "+template(r))
			}
		}
	}
	for path, item := range under(t, openAPI(t), "paths") {
		for method := range item.(node) {
			if method != "parameters" {
				documented = append(documented, method+" "+path)
			}
		}
	}
	require.ElementsMatch(t, routes, documented)
}

// Each field of a route is in the document, in its query or in its JSON body, and no other is.
func TestTheDocumentHasEveryField(t *testing.T) {
	doc := openAPI(t)
	for _, r := range allRoutes() {
		op := under(t, doc, "paths", template(r), strings.ToLower(r.methods[0]))
		names := map[string]bool{}
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			names[resolve(t, doc, p.(node))["name"].(string)] = true
		}
		if body, ok := op["requestBody"].(node); ok {
			schema := under(t, body, "content", "application/json", "schema")
			addProperties(t, doc, resolve(t, doc, schema), "", names)
		}
		require.ElementsMatch(t, r.fields, slices.Collect(maps.Keys(names)), r.path)
	}
}

func addProperties(t *testing.T, doc, schema node, prefix string, names map[string]bool) {
	for name, p := range under(t, schema, "properties") {
		if p := resolve(t, doc, p.(node)); p["properties"] != nil {
			addProperties(t, doc, p, prefix+name+".", names)
		} else {
			names[prefix+name] = true
		}
	}
}

func resolve(t *testing.T, doc, n node) node {
	if ref, ok := n["$ref"].(string); ok {
		return under(t, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return n
}

func TestTheDocumentHasEveryReasonAndStatus(t *testing.T) {
	doc := openAPI(t)
	reasons := []seckill.Reason{
		okReason, created, queued, methodNotAllowed, internal, seckill.BadRequest, seckill.Unauthenticated, seckill.Forbidden,
		seckill.BadPath, seckill.NotFound, seckill.NotStarted, seckill.Ended, seckill.SoldOut, seckill.LimitReached,
		seckill.Conflict, seckill.RateLimited, seckill.Unavailable,
	}
	require.ElementsMatch(t, reasons, words[seckill.Reason](under(t, doc, "components", "schemas", "Reason")))
	require.ElementsMatch(t, words[order.Status](under(t, doc, "components", "schemas", "OrderStatus")),
		[]order.Status{order.Queued, order.Created, order.Paid, order.Cancelled, order.Expired, order.Failed})
	require.ElementsMatch(t, words[seckill.Phase](under(t, doc, "components", "schemas", "Phase")),
		[]seckill.Phase{seckill.Upcoming, seckill.Ongoing, seckill.PhaseSoldOut, seckill.PhaseEnded})
}

func words[T ~string](schema node) (out []T) {
	for _, w := range schema["enum"].([]any) {
		out = append(out, T(w.(string)))
	}
	return out
}

// Each reference leads somewhere, and each example of an answer has the one shape.
func TestTheDocumentHoldsTogether(t *testing.T) {
	doc := openAPI(t)
	examples := 0
	walk(doc, func(n node) {
		if ref, ok := n["$ref"].(string); ok {
			path := strings.Split(strings.TrimPrefix(ref, "#/"), "/")
			under(t, doc, path...)
		}
		if _, ok := n["requestId"].(string); ok {
			examples++
			require.ElementsMatch(t, []string{"code", "reason", "message", "data", "requestId"}, slices.Collect(maps.Keys(n)))
			status := statusOf(seckill.Reason(n["reason"].(string)))
			require.EqualValues(t, status, n["code"])
			require.IsType(t, node{}, n["data"])
		}
	})
	require.Greater(t, examples, 15)
}

func walk(v any, visit func(node)) {
	switch v := v.(type) {
	case node:
		visit(v)
		for _, child := range v {
			walk(child, visit)
		}
	case []any:
		for _, child := range v {
			walk(child, visit)
		}
	}
}
