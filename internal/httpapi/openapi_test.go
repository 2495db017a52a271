package httpapi

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/webhook"
)

type node = map[string]any

func openAPI(t *testing.T) node {
	t.Helper()
	raw := must.Get(os.ReadFile("../../api/openapi.yaml"))(t)
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

// allRoutes returns the routes that the document describes.
func allRoutes() []route {
	a := newAPI(Deps{})
	return append(a.probes(), a.routes()...)
}

// operation returns the OpenAPI name of a route's first method.
func operation(r route) string { return strings.ToLower(strings.Fields(r.methods)[0]) }

// template returns a route's path in OpenAPI notation.
func template(path string) string {
	return regexp.MustCompile(`[:*](\w+)`).ReplaceAllString(path, "{$1}")
}

// TestOpenAPI_HasEveryRoute checks that the document contains every route of the router and no
// other. The pages that apicheck names are exempt.
func TestOpenAPI_HasEveryRoute(t *testing.T) {
	deps := Deps{Limiter: &RuleLimiter{Book: must.Get(rules.New())(t)}}
	router, is := New(deps).(*gin.Engine)
	require.True(t, is)
	var routes, documented []string
	for _, r := range router.Routes() {
		if r.Method != http.MethodHead && !apicheck.Page(r.Path) {
			routes = append(routes, strings.ToLower(r.Method)+" "+template(r.Path))
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

// TestOpenAPI_HasEveryField checks that the document lists exactly the fields that each route
// reads. It checks the query, the JSON body and the form.
func TestOpenAPI_HasEveryField(t *testing.T) {
	doc := openAPI(t)
	for _, r := range allRoutes() {
		op := under(t, doc, "paths", template(r.path), operation(r))
		names, form := map[string]bool{}, map[string]bool{}
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			if p := resolve(t, doc, p.(node)); p["in"] == "query" {
				names[p["name"].(string)] = true
			}
		}
		maps.Copy(form, names)
		if body, ok := op["requestBody"].(node); ok && !r.webhook { // the provider's fields
			schema := under(t, body, "content", "application/json", "schema")
			addProperties(t, doc, resolve(t, doc, schema), "", names)
			schema = under(t, body, "content", "application/x-www-form-urlencoded", "schema")
			addProperties(t, doc, resolve(t, doc, schema), "", form)
		}
		require.ElementsMatch(t, r.fields, slices.Collect(maps.Keys(names)), r.path)
		require.ElementsMatch(t, r.fields, slices.Collect(maps.Keys(form)), r.path)
	}
}

func addProperties(t *testing.T, doc, schema node, prefix string, names map[string]bool) {
	for name, p := range under(t, schema, "properties") {
		if p := resolve(t, doc, p.(node)); p["properties"] != nil {
			addProperties(t, doc, p, prefix+name+".", names)
		} else if p["type"] == "object" {
			names[prefix+name+".*"] = true
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

// TestOpenAPI_HasEveryWord checks that the document's enumerations have exactly the constants of
// their types, and that each reason has a status of its own.
func TestOpenAPI_HasEveryWord(t *testing.T) {
	requireEverywhere(t, reasonOK)
	requireEverywhere(t, order.Queued, order.Statuses()...)
	requireEverywhere(t, order.FailedLost, order.FailureReasons()...)
	requireEverywhere(t, event.SaleClosed, event.Types()...)
	requireEverywhere(t, salechange.ActCreate, salechange.Actions()...)
	requireEverywhere(t, apikey.SalesRead, apikey.Scopes()...)
	requireEverywhere(t, seckill.Upcoming)
	requireEverywhere(t, seckill.Draft)
	requireEverywhere(t, seckill.ByWaitingRoom)
	requireEverywhere(t, seckill.SharedCodes)
	requireEverywhere(t, webhook.Dead)
	requireEverywhere(t, webhook.BadTLS)
	requireEverywhere(t, payment.RefundDispute)
	requireEverywhere(t, payment.ReversalDispute)
	for _, r := range constants[apierror.Reason](t) {
		require.True(t, r == reasonInternal || statusOf(r) != http.StatusInternalServerError,
			"statusOf lacks %s", r)
	}
}

// requireEverywhere checks that each enumeration of the document that has one constant of a type
// has all of them, and that the list of the type, if it has one, does too.
func requireEverywhere[T ~string](t *testing.T, one T, list ...T) {
	t.Helper()
	all, found := constants[T](t), false
	if list != nil {
		require.ElementsMatch(t, all, list)
	}
	walk(openAPI(t), func(n node) {
		if values, _ := n["enum"].([]any); slices.Contains(values, any(string(one))) {
			found = true
			var words []T
			for _, v := range values {
				words = append(words, T(v.(string)))
			}
			require.ElementsMatch(t, all, words, "%s in openapi.yaml", reflect.TypeFor[T]())
		}
	})
	require.True(t, found, one)
}

// constants returns the constants of a type without the empty one. It reads the sources of the
// type's package and of this one, because no list in a program can be checked for what it lacks.
func constants[T ~string](t *testing.T) (all []T) {
	of := reflect.TypeFor[T]()
	home := ".." + strings.TrimPrefix(of.PkgPath(), "flashsale.dev/seckill/internal")
	for dir, name := range map[string]string{home: of.Name(), ".": of.String()} {
		for _, file := range must.Get(filepath.Glob(dir + "/*.go"))(t) {
			source := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
			ast.Inspect(source, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if ok && types.ExprString(spec.Type) == name && spec.Values != nil {
					value, err := strconv.Unquote(types.ExprString(spec.Values[0]))
					require.NoError(t, err, "%s: %s", file, spec.Names[0])
					if value != "" {
						all = append(all, T(value))
					}
				}
				return true
			})
		}
	}
	return all
}

// TestOpenAPI_HasEveryAnswerOfAuthentication checks that an operation that may refuse a token has
// the other answers of its verification too. These are 429 for many invalid API keys, and 503 while
// keys cannot be read or the issuer's keys are not known.
func TestOpenAPI_HasEveryAnswerOfAuthentication(t *testing.T) {
	doc := openAPI(t)
	for _, r := range allRoutes() {
		for method := range strings.FieldsSeq(strings.ToLower(r.methods)) {
			if method == "head" {
				continue
			}
			responses := under(t, doc, "paths", template(r.path), method, "responses")
			if responses["401"] == nil {
				require.True(t, r.public, "%s %s", method, r.path)
				continue
			}
			statuses := slices.Collect(maps.Keys(responses))
			require.Subset(t, statuses, []string{"429", "503"}, "%s %s", method, r.path)
		}
	}
}

// TestOpenAPI_HasEveryGuard checks that every call with a rate limit documents 429. Every call that
// needs a token documents 401.
func TestOpenAPI_HasEveryGuard(t *testing.T) {
	doc := openAPI(t)
	for _, r := range allRoutes() {
		answers := under(t, doc, "paths", template(r.path), operation(r), "responses")
		entry := r.path == "/session" && r.methods == post // public, but checks a token
		require.Equal(t, !r.public || r.signed || entry, answers["401"] != nil, r.path)
		require.Equal(t, !r.unchecked, answers["400"] != nil, r.path)
		if !r.unlimited && !r.unchecked {
			require.NotNil(t, answers["429"], r.path)
		}
	}
}

// TestOpenAPI_HasProblemsOfErrorsOnly checks which responses have the form of RFC 9457.
func TestOpenAPI_HasProblemsOfErrorsOnly(t *testing.T) {
	for id, call := range must.Get(apicheck.Load())(t).Calls() {
		for status, response := range call.Operation.Responses.Map() {
			found := response.Value.Content[problemType] != nil
			require.Equal(t, status == "default" || status >= "400", found, "%s %s", id, status)
		}
	}
}

// TestOpenAPI_HasAnExampleOfEveryReason checks that an example shows each reason of the contract,
// in the API's common JSON shape and with the reason's status. Package apicheck validates all
// examples against their schemas, and all references.
func TestOpenAPI_HasAnExampleOfEveryReason(t *testing.T) {
	doc := openAPI(t)
	shown := map[apierror.Reason]bool{}
	walk(doc, func(n node) {
		if _, ok := n["requestId"].(string); !ok {
			return
		}
		require.ElementsMatch(t, []string{"code", "reason", "message", "data", "requestId"},
			slices.Collect(maps.Keys(n)))
		reason := apierror.Reason(n["reason"].(string))
		shown[reason] = true
		// A rule may set its own code, and a reused Idempotency-Key is a Conflict with another.
		if reason != apierror.RateLimited && fmt.Sprint(n["code"]) != "422" {
			require.EqualValues(t, statusOf(reason), n["code"])
		}
		require.IsType(t, node{}, n["data"])
	})
	require.ElementsMatch(t, constants[apierror.Reason](t),
		slices.Collect(maps.Keys(shown)))
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
