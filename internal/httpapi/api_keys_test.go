package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/testing/badrequests"
	"flashsale.dev/seckill/internal/testing/must"
)

// keyReply is an API key in responses.
type keyReply struct {
	Key, ID, MerchantID, Name, Prefix, CreatedBy, RevokedBy, RevokedAt, LastUsedAt string
	Scopes                                                                         []string
}

// newKey makes a key and returns it.
func (h *fixture) newKey(who actor, body string) keyReply {
	h.t.Helper()
	return dataOf[keyReply](h, h.want(201, h.as(who, "POST", "/admin/api-keys", body)))
}

func (h *fixture) keys(who actor, query string) []keyReply {
	h.t.Helper()
	r := h.want(200, h.as(who, "GET", "/admin/api-keys"+query, ""))
	return dataOf[struct{ Items []keyReply }](h, r).Items
}

// with sends a request with an API key.
func (h *fixture) with(k keyReply, method, target, body string) reply {
	h.t.Helper()
	return h.ask(method, target, body, "Authorization", "Bearer "+k.Key)
}

// TestAPIKeys_LifeOfAKey makes a key, uses it, lists it and revokes it. Its text is in the first
// response only.
func TestAPIKeys_LifeOfAKey(t *testing.T) {
	h := newFixture(t)
	goods := h.sell(nil)
	k := h.newKey(merchant(), `{"name":"stock system","scopes":["sales:write","sales:read"]}`)
	require.True(t, strings.HasPrefix(k.Key, k.Prefix+"_"))
	require.Equal(t, "sk_"+k.ID, k.Prefix)
	require.Equal(t, []string{"sales:read", "sales:write"}, k.Scopes)
	require.Equal(t, "70 70", k.MerchantID+" "+k.CreatedBy)

	h.want(200, h.with(k, "GET", "/admin/sales/"+goods, ""))
	h.want(200, h.with(k, "PATCH", "/admin/sales/"+goods, `{"perBuyerLimit":3}`))
	r := h.want(403, h.with(k, "GET", "/admin/sales/"+goods+"/orders", ""))
	require.Contains(t, r.Message, "lacks the scope orders:read")
	audit := h.want(200, h.as(merchant(), "GET", "/admin/sales/"+goods+"/audit?limit=1", ""))
	require.Contains(t, string(audit.Data), `"apiKey":{"id":"`+k.ID+`","name":"stock system"}`)
	require.Contains(t, string(audit.Data), `"actorId":"70","actorRole":"merchant"`)

	require.Len(t, h.keys(merchant(), ""), 1)
	require.Empty(t, h.keys(merchant(), "")[0].Key)
	path := "/admin/api-keys/" + k.ID
	h.want(403, h.as(otherMerchant(), "DELETE", path, ""))
	h.want(403, h.as(buyer(), "DELETE", path, ""))
	h.want(404, h.as(merchant(), "DELETE", "/admin/api-keys/"+strings.Repeat("0", 26), ""))
	h.want(404, h.as(merchant(), "DELETE", "/admin/api-keys/x", ""))
	first := dataOf[keyReply](h, h.want(200, h.as(operator(), "DELETE", path, "")))
	again := dataOf[keyReply](h, h.want(200, h.as(merchant(), "DELETE", path, "")))
	require.Equal(t, "1", first.RevokedBy)
	require.Equal(t, first, again, "a second revocation changes nothing")
	require.Empty(t, again.Key)
}

// TestAPIKeys_ListsArePagedAndSeparate checks that merchants see their own keys only, newest first,
// and that operators see all or one merchant's.
func TestAPIKeys_ListsArePagedAndSeparate(t *testing.T) {
	h := newFixture(t)
	var made []string
	for _, name := range []string{"a", "b", "c"} {
		made = append(made, h.newKey(merchant(), `{"name":"`+name+`","scopes":["sales:read"]}`).ID)
	}
	others := h.newKey(operator(), `{"name":"d","scopes":["sales:read"],"merchantId":"80"}`)
	require.Equal(t, "80 1", others.MerchantID+" "+others.CreatedBy)
	require.Equal(t, []string{made[2], made[1], made[0]},
		h.pages(merchant(), "/admin/api-keys?limit=1", "id"))
	require.Equal(t, others.ID, h.keys(otherMerchant(), "")[0].ID)
	require.Len(t, h.keys(operator(), ""), 4)
	require.Len(t, h.keys(operator(), "?merchantId=70"), 3)
	h.want(403, h.as(merchant(), "GET", "/admin/api-keys?merchantId=80", ""))
	h.want(403, h.as(merchant(), "POST", "/admin/api-keys",
		`{"name":"x","scopes":["sales:read"],"merchantId":"80"}`))
	h.want(403, h.as(buyer(), "GET", "/admin/api-keys", ""))
	h.want(403, h.as(buyer(), "POST", "/admin/api-keys", `{"name":"x","scopes":["sales:read"]}`))
}

// TestAPIKeys_BadInput checks the responses to bad fields and bad keys.
func TestAPIKeys_BadInput(t *testing.T) {
	h := newFixture(t)
	const good = `"scopes":["sales:read"]`
	for body, field := range map[string]string{
		`{` + good + `}`:                                          "name",
		`{"name":"",` + good + `}`:                                "name",
		`{"name":1,` + good + `}`:                                 "name",
		`{"name":"a\u0000",` + good + `}`:                         "name",
		`{"name":"` + strings.Repeat("n", 81) + `",` + good + `}`: "name",
		`{"name":"x"}`:                                            "scopes",
		`{"name":"x","scopes":[]}`:                                "scopes",
		`{"name":"x","scopes":"sales:read"}`:                      "scopes",
		`{"name":"x","scopes":[1]}`:                               "scopes",
		`{"name":"x","scopes":[["sales:read"]]}`:                  "scopes",
		`{"name":"x","scopes":["*"]}`:                             "scopes",
		`{"name":"x","scopes":["sales:read,orders:read"]}`:        "scopes",
		`{"name":"x","scopes":["sales:read","sales:read"]}`:       "scopes",
		`{"name":"x","merchantId":"a b",` + good + `}`:            "merchantId",
		`{"name":"x","merchantId":70,` + good + `}`:               "merchantId",
		`{"name":"x","id":"1",` + good + `}`:                      "id",
	} {
		r := h.want(400, h.as(merchant(), "POST", "/admin/api-keys", body))
		require.Equal(t, field, dataOf[struct{ Field string }](h, r).Field, body)
	}
	r := h.want(400, h.as(operator(), "POST", "/admin/api-keys", `{"name":"x",`+good+`}`))
	require.Equal(t, "merchantId", dataOf[struct{ Field string }](h, r).Field)
	h.want(400, h.as(merchant(), "GET", "/admin/api-keys?cursor=a3g", ""))

	k := h.newKey(merchant(), `{"name":"x",`+good+`}`)
	for _, text := range []string{
		"sk_", "sk_x", k.Key + "0", k.Prefix, k.Key[:len(k.Key)-1] + "%",
	} {
		r := h.want(401, h.with(keyReply{Key: text}, "GET", "/admin/sales", ""))
		require.Equal(t, "Bearer", r.Header.Get("WWW-Authenticate"))
	}
	h.want(401, h.with(k, "POST", "/session", ""))
	h.want(401, h.ask("POST", "/session", `{"token":"`+k.Key+`"}`))
	h.want(401, h.ask("GET", "/admin/sales", "", "Cookie", "session="+k.Key))
}

// TestAPIKeys_FailedAttemptsAreLimited checks that an address with invalid keys gets 429 in the
// end, and that a valid key from there still works.
func TestAPIKeys_FailedAttemptsAreLimited(t *testing.T) {
	h := newFixture(t, `rules: [{name: failedApiKey, by: [ip], scope: node,
  algorithm: token_bucket, permitsPerSecond: 0.001, burst: 2}]`)
	k := h.newKey(merchant(), `{"name":"x","scopes":["sales:read"]}`)
	bad := keyReply{Key: k.Prefix + "_" + strings.Repeat("0", 52)}
	h.want(401, h.with(bad, "GET", "/admin/sales", ""))
	h.want(401, h.with(bad, "GET", "/admin/limiters", ""))
	r := h.want(429, h.with(bad, "GET", "/admin/sales", ""))
	require.NotEmpty(t, r.Header.Get("Retry-After"))
	h.want(200, h.with(k, "GET", "/admin/sales", ""))
}

// TestAPIKeys_RefusedWithoutTheScope makes every call that needs a caller with a key of each single
// other scope, and with a key of all other scopes. The calls are valid in all else, so that 403 is
// the first error. A bad field and a thing that does not exist come before it.
func TestAPIKeys_RefusedWithoutTheScope(t *testing.T) {
	h := newFixture(t)
	keys := map[string]keyReply{}
	key := func(scopes ...apikey.Scope) keyReply {
		list := string(must.Get(json.Marshal(scopes))(t))
		if _, made := keys[list]; !made {
			keys[list] = h.newKey(merchant(), `{"name":"erp","scopes":`+list+`}`)
		}
		return keys[list]
	}
	goods := h.sell(nil)
	sn := h.order(buyer(), goods, 1)
	hook := dataOf[struct{ ID string }](h, h.want(201, h.as(merchant(), "POST", "/admin/webhooks",
		`{"url":"https://shop.example/"}`))).ID
	const unknown = "01a1fc15-9a10-78e6-83a6-b45fac893a06"
	target := func(route string) string {
		id := hook
		switch {
		case strings.HasPrefix(route, "/admin/dead-letters"):
			id = unknown
		case strings.HasPrefix(route, "/admin/api-keys"):
			id = key(apikey.SalesRead).ID
		}
		path := strings.NewReplacer(":goodsId", goods, ":orderSn", sn, ":deliveryId", unknown,
			":id", id, ":randomPath", strings.Repeat("0", 32), ":type", "randomPath", "*key", goods,
			":paymentId", "p1").Replace(route)
		switch route {
		case "/randomPath", "/:randomPath/decrStock":
			return path + "?goodsId=" + goods
		case "/admin/orders":
			return path + "?orderSn=" + sn
		}
		return path
	}
	bodies := map[string]string{
		"POST /admin/sales":                badrequests.NewSale("title", `"x"`),
		"PATCH /admin/sales/:goodsId":      `{"perBuyerLimit":2}`,
		"POST /admin/orders/:orderSn/ship": `{"carrier":"DHL"}`,
		"POST /admin/webhooks":             `{"url":"https://shop.example/"}`,
		"POST /admin/api-keys":             `{"name":"x","scopes":["sales:read"]}`,
		"PUT /orders/:orderSn/shipping": `{"name":"Ann Lee","line1":"1 High Street",
			"city":"London","country":"GB"}`,
	}
	checked := 0
	for _, r := range httpapi.PrivateRoutes() {
		others := slices.DeleteFunc(apikey.Scopes(), func(s apikey.Scope) bool {
			return s == r.Scope
		})
		callers := []keyReply{key(others...)}
		for _, s := range others {
			callers = append(callers, key(s))
		}
		for _, method := range r.Methods {
			for _, k := range callers {
				res, text := h.do(method, target(r.Path), bodies[method+" "+r.Path],
					"Authorization", "Bearer "+k.Key)
				call, want := method+" "+r.Path, http.StatusForbidden
				if strings.HasPrefix(r.Path, "/admin/dead-letters/") ||
					strings.HasPrefix(r.Path, "/admin/refunds/") {
					want = http.StatusNotFound
				}
				require.Equal(t, want, res.StatusCode, "%s %s", call, text)
				require.NotContains(t, text, k.Key)
				checked++
				if method == http.MethodHead || want != http.StatusForbidden {
					continue
				}
				if r.Scope == "" {
					require.Contains(t, text, "an API key may not do this", call)
				} else {
					require.Contains(t, text, "the API key lacks the scope "+string(r.Scope), call)
				}
			}
		}
	}
	require.Greater(t, checked, 150)
	reader := key(apikey.SalesRead)
	h.want(400, h.with(reader, "PATCH", "/admin/sales/"+goods, `{"x":1}`))
	h.want(404, h.with(reader, "PATCH", "/admin/sales/1", `{}`))
	h.want(404, h.with(reader, "GET", "/orders/order-0", ""))
}
