package httpapi_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/badrequests"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestCreateSale_CreatesADraft(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	endsAtItsStart := badrequests.NewSale("endAt", `"2026-11-11T14:00:00.0009+02:00"`)
	h.want(400, h.as(merchant(), "POST", "/admin/sales", endsAtItsStart))
	r := h.want(201, h.as(merchant(), "POST", "/admin/sales",
		badrequests.NewSale("rate", `{"permitsPerSecond":0.5,"maxWaitMillis":0}`)))
	require.Equal(t, "CREATED", r.Reason)
	created := h.want(200, h.as(merchant(), "GET", r.Header.Get("Location"), ""))
	require.JSONEq(t, string(r.Data), string(created.Data))
	for _, member := range []string{
		`"merchantId":"70"`, `"status":"draft"`, `"stock":10`, `"perBuyerLimit":1`,
		`"startAt":"2026-11-11T12:00:00.000Z","endAt":"2099-11-11T12:00:00.000Z"`,
		`"rate":{"algorithm":"reserve","permitsPerSecond":0.5,` +
			`"maxBurstSeconds":1,"maxWaitMillis":0}`,
	} {
		require.Contains(t, r.Body, member)
	}

	id := h.draft(nil)
	one := "/admin/sales/" + id
	require.Equal(t, "NOT_FOUND", h.ask("GET", "/sales/"+id, "").Reason, "a draft is not shown")
	for range 2 {
		r = h.want(200, h.as(merchant(), "POST", one+"/expose", ""))
		require.Contains(t, r.Body, `"status":"exposed","phase":"ongoing"`)
	}
	h.want(200, h.as(operator(), "GET", one, ""))
	r = h.as(merchant(), "GET", one+"/ledger", "")
	require.JSONEq(t, `{"total":10,"available":10,"pending":0,"sold":0,"balanced":true,"epoch":1,
		"database":{"stock":10,"active":0}}`, string(r.Data))
	for range 2 {
		r = h.as(merchant(), "POST", one+"/close", "")
		require.Contains(t, r.Body, `"status":"closed"`)
	}
	require.Equal(t, "CONFLICT", h.as(merchant(), "POST", one+"/expose", "").Reason)
}

// aheadOf is a database whose clock is ahead of this host's.
type aheadOf struct{ inventory.Store }

func (s aheadOf) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Now(ctx)
	return now.Add(2 * time.Hour), err
}

// TestMerchantSale_HasThePhaseOfTheDatabasesClock checks that a node whose own clock is off shows
// the right phase.
func TestMerchantSale_HasThePhaseOfTheDatabasesClock(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.Sales.Store = aheadOf{h.Sales.Store}
	one := "/admin/sales/" + h.draft(sale{
		"startAt": time.Now().Add(time.Hour), "endAt": time.Now().Add(5 * time.Hour),
	})
	for _, r := range []reply{
		h.as(merchant(), "POST", one+"/expose", ""), h.as(merchant(), "GET", one, ""),
		h.as(merchant(), "PATCH", one, `{"description":"new"}`),
		h.as(merchant(), "GET", "/admin/sales", ""),
	} {
		require.Contains(t, h.want(200, r).Body, `"phase":"ongoing"`)
	}
}

// TestCreateSale_AcceptsAnyTitle checks that the API stores and returns titles with markup or code
// unchanged.
func TestCreateSale_AcceptsAnyTitle(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for json, want := range map[string]string{
		`"'); DROP TABLE goods; --"`:             `'); DROP TABLE goods; --`,
		`"return redis.call('FLUSHALL')"`:        `return redis.call('FLUSHALL')`,
		`"<script>alert(1)</script>"`:            `<script>alert(1)</script>`,
		`"手机 \ud83d\udcf1 \u2028 \\ \" {{7*7}}"`: "手机 📱 \u2028 \\ \" {{7*7}}",
	} {
		created := h.want(201, h.as(merchant(), "POST", "/admin/sales",
			badrequests.NewSale("title", json)))
		id := dataOf[struct{ GoodsID string }](h, created).GoodsID
		for _, r := range []reply{created, h.as(merchant(), "GET", "/admin/sales/"+id, "")} {
			require.Equal(t, want, dataOf[struct{ Title string }](h, r).Title)
		}
	}
}

// TestSale_KeepsEveryField checks that each field that a merchant may set is stored, shown, changed
// and recorded. The document of the API has the names, so that no new field is forgotten.
func TestSale_KeepsEveryField(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	document := must.Get(apicheck.Load())(t)
	first := sale{
		"title": "Tea", "price": 5, "stock": 7, "startAt": "2026-01-01T00:00:00.000Z",
		"endAt": "2098-01-01T00:00:00.000Z", "perBuyerLimit": 3,
		"rate": sale{
			"algorithm": "token_bucket", "permitsPerSecond": 2, "maxBurstSeconds": 3,
			"maxWaitMillis": 4,
		},
		"admission": "waitingRoom", "accessCode": "shared", "description": "Two\nlines",
		"imageUrl": "https://example.com/a.png", "externalId": "SKU-1",
		"metadata": sale{"season": "spring", "box": "7"}, "currency": "JPY",
	}
	then := sale{
		"title": "Cup", "price": 6, "startAt": "2026-01-02T00:00:00.000Z",
		"endAt": "2098-01-02T00:00:00.000Z", "perBuyerLimit": 4,
		"rate": sale{
			"algorithm": "reserve", "permitsPerSecond": 5, "maxBurstSeconds": 6, "maxWaitMillis": 7,
		},
		"admission": "rate", "accessCode": "single", "description": "green",
		"imageUrl": "https://example.com/b.png", "externalId": "SKU-2",
		"metadata": sale{"a": "b"}, "currency": "EUR",
	}
	names := func(s sale) []string { return slices.Collect(maps.Keys(s)) }
	text := func(s sale) string { return string(must.Get(json.Marshal(s))(t)) }
	_, fields := document.Fields("POST", "/admin/sales")
	require.ElementsMatch(t, fields, names(first))
	one := "/admin/sales/" + h.draft(first)
	_, fields = document.Fields("PATCH", one)
	require.ElementsMatch(t, fields, append(names(then), "stockDelta"))
	shows := func(path string, want sale) {
		shown := dataOf[map[string]any](h, h.want(200, h.as(merchant(), "GET", path, "")))
		for name, value := range want {
			require.JSONEq(t, text(sale{name: value}), text(sale{name: shown[name]}), path)
		}
	}
	shows(one, first)
	h.want(200, h.as(merchant(), "PATCH", one, text(then)))
	shows(one, then)

	recorded := h.want(200, h.as(merchant(), "GET", one+"/audit?limit=1", "")).Body
	for name, value := range then {
		if of, ok := value.(sale); ok && name == "rate" {
			for _, member := range names(of) {
				require.Equal(t, 2, strings.Count(recorded, `"rate.`+member+`":`), member)
			}
		} else {
			require.Equal(t, 2, strings.Count(recorded, `"`+name+`":`), name)
		}
	}
	h.want(200, h.as(merchant(), "POST", one+"/expose", ""))
	for _, own := range []string{"rate", "externalId", "metadata"} { // buyers do not see these
		delete(then, own)
	}
	shows(one[len("/admin"):], then)
}

// TestSaleDetails_CanBeTakenBack checks what a change of the details refuses and removes, and that
// it keeps the others.
func TestSaleDetails_CanBeTakenBack(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(sale{
		"description": "Two\nlines", "imageUrl": "https://example.com/a.png", "externalId": "SKU-1",
		"metadata": sale{"season": "spring"}, "currency": "JPY",
	})
	one := "/admin/sales/" + goods
	again := h.want(409, h.as(merchant(), "POST", "/admin/sales",
		badrequests.NewSale("externalId", `"SKU-1"`)))
	require.Contains(t, string(again.Data), "externalId")
	require.Equal(t, "CONFLICT", h.as(merchant(), "PATCH", one, `{"currency":"EUR"}`).Reason)
	changed := h.want(200, h.as(merchant(), "PATCH", one, `{"imageUrl":"","metadata":{"a":"b"}}`))
	require.Contains(t, changed.Body, `"metadata":{"a":"b"}`)
	require.NotContains(t, changed.Body, "imageUrl")
	public := h.want(200, h.ask("GET", "/sales/"+goods, ""))
	require.Contains(t, public.Body, `"description":"Two\nlines","currency":"JPY"`)
	for _, own := range []string{"metadata", "externalId", "imageUrl"} {
		require.NotContains(t, public.Body, own)
	}
	require.Contains(t, h.want(200, h.ask("GET", "/sales", "")).Body, `"currency":"JPY"`)
	cleared := h.want(200, h.as(merchant(), "PATCH", one, `{"externalId":"","metadata":{}}`))
	require.NotContains(t, cleared.Body, "metadata")
	h.want(201, h.as(merchant(), "POST", "/admin/sales",
		badrequests.NewSale("externalId", `"SKU-1"`)))
}

func TestCreateSale_AcceptsAForm(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	target := "/admin/sales?rate.permitsPerSecond=2.5e1&rate.algorithm=token_bucket"
	form := "title=A+phone&price=0&stock=100000000&perBuyerLimit=1000" +
		"&startAt=2026-11-11T12:00:00%2B02:00&endAt=2026-11-12T00:00:00Z"
	r := h.want(201, h.as(merchant(), "POST", target, form,
		"Content-Type", "application/x-www-form-urlencoded"))
	require.Contains(t, r.Body, `"startAt":"2026-11-11T10:00:00.000Z"`)
	require.Contains(t, r.Body, `"algorithm":"token_bucket","permitsPerSecond":25,`)
}

func TestChangeSale_KeepsAbsentFields(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	path := "/admin/sales/" + h.sell(nil)
	change := func(body string) reply { return h.as(merchant(), "PATCH", path, body) }
	r := h.want(200, change(`{"stockDelta":-3,"perBuyerLimit":2,
		"endAt":"2096-11-12T00:00:00+01:00","rate":{"permitsPerSecond":5}}`))
	for _, member := range []string{
		`"stock":7`, `"endAt":"2096-11-11T23:00:00.000Z"`, `"perBuyerLimit":2`,
		`"rate":{"algorithm":"reserve","permitsPerSecond":5,` +
			`"maxBurstSeconds":1,"maxWaitMillis":1000}`,
	} {
		require.Contains(t, r.Body, member)
	}
	h.want(400, change(`{"startAt":"2097-11-12T00:00:00Z"}`)) // it would end before it starts
	h.want(200, h.as(operator(), "PATCH", path+"?stockDelta=5", ""))

	r = h.as(merchant(), "GET", path+"/audit?limit=1", "")
	require.Contains(t, r.Body, `"actorId":"1","actorRole":"operator","action":"change",`+
		`"from":{"stock":7},"to":{"stock":12},"at":"`)
	require.Len(t, h.pages(merchant(), path+"/audit?limit=1", "id"), 4)
}

// TestIdempotencyKey_RepeatsTheFirstResponse checks the key's notation and its scope. A test of
// package app checks how long the first response stands.
func TestIdempotencyKey_RepeatsTheFirstResponse(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	create := func(who actor, key, title string) reply {
		body := badrequests.NewSale("title", title)
		return h.as(who, "POST", "/admin/sales", body, "Idempotency-Key", key)
	}
	first := h.want(201, create(merchant(), "k-1", `"a"`))
	for _, key := range []string{"k-1", `"k-1"`} {
		again := h.want(201, create(merchant(), key, `"a"`))
		require.JSONEq(t, string(first.Data), string(again.Data))
	}
	require.Equal(t, "CONFLICT", h.want(422, create(merchant(), "k-1", `"b"`)).Reason)
	h.want(201, create(otherMerchant(), "k-1", `"b"`)) // each merchant has keys of its own
}

// TestSaleChange_KeyOfAnOperatorOpensNoOthersSale has a merchant with the id of an operator repeat
// the operator's requests, whose answers are stored.
func TestSaleChange_KeyOfAnOperatorOpensNoOthersSale(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	same := actor{ID: otherMerchant().ID, Role: seckill.Operator}
	path := "/admin/sales/" + h.draft(nil)
	for _, method := range []string{"PATCH", "DELETE"} {
		body := ""
		if method == "PATCH" {
			body = `{"description":"x"}`
		}
		h.want(200, h.as(same, method, path, body, "Idempotency-Key", method))
		h.want(403, h.as(otherMerchant(), method, path, body, "Idempotency-Key", method))
		h.want(200, h.as(same, method, path, body, "Idempotency-Key", method))
	}
}

// TestIdempotencyKey_CoversEmptyObjects checks a body that differs by an object without members,
// which removes all pairs of metadata.
func TestIdempotencyKey_CoversEmptyObjects(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	path := "/admin/sales/" + h.draft(sale{"metadata": map[string]string{"a": "b"}})
	change := func(body string) reply {
		return h.as(merchant(), "PATCH", path, body, "Idempotency-Key", "k-1")
	}
	h.want(200, change("{}"))
	require.Equal(t, "CONFLICT", h.want(422, change(`{"metadata":{}}`)).Reason)
}

// TestListSales_HasWhatEachSold checks the figures of the list: sold units of unpaid orders too,
// but the revenue of paid ones only.
func TestListSales_HasWhatEachSold(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.draft(nil)
	goods := h.sell(sale{"currency": "JPY"})
	paid := h.order(buyer(), goods, 2)
	h.order(otherBuyer(), goods, 1)
	h.want(200, h.as(buyer(), "POST", "/orders/"+paid+"/pay", ""))
	body := h.want(200, h.as(merchant(), "GET", "/admin/sales", "")).Body
	require.Contains(t, body, `"sold":3,"left":7,"revenue":399800`)
	require.Contains(t, body, `"sold":0,"left":10,"revenue":0`)
	one := h.want(200, h.as(merchant(), "GET", "/admin/sales/"+goods, "")).Body
	require.Contains(t, one, `"sold":3,"left":7,"startAt"`)
}

// TestSales_HeadHasTheLengthOfGet checks a list that is longer than what net/http buffers, beyond
// which it sets no length of its own.
func TestSales_HeadHasTheLengthOfGet(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for range 20 {
		h.draft(sale{"description": strings.Repeat("x", 500)})
	}
	auth := h.bearer(merchant())
	get, body := h.do("GET", "/admin/sales?limit=20", "", "Authorization", auth)
	require.Greater(t, len(body), 10_000)
	head, none := h.do("HEAD", "/admin/sales?limit=20", "", "Authorization", auth)
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.Empty(t, none)
	require.Equal(t, strconv.Itoa(len(body)), get.Header.Get("Content-Length"))
	require.Equal(t, get.Header.Get("Content-Length"), head.Header.Get("Content-Length"))
}
