package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/webhook"
)

// shownWebhook is a webhook as its owner sees it.
type shownWebhook struct {
	ID, OwnerID, URL, Position, Secret string
	EventTypes                         []string
	MaxBatch, MaxPerSecond             int64
	Enabled                            bool
	OldSecretUntil                     time.Time
}

type shownDelivery struct {
	ID, State, Problem string
	Events, Attempts   int64
	Status             int
}

type listOf[T any] struct {
	Items      []T
	NextCursor *string
}

// hook creates a webhook with JSON fields.
func (h *fixture) hook(who actor, fields string) shownWebhook {
	h.t.Helper()
	return dataOf[shownWebhook](h, h.want(201, h.as(who, "POST", "/admin/webhooks", fields)))
}

// listHooks lists the ids of a caller's webhooks, page by page.
func (h *fixture) listHooks(who actor) (ids []string) {
	h.t.Helper()
	for query := "?limit=1"; ; {
		r := h.want(200, h.as(who, "GET", "/admin/webhooks"+query, ""))
		require.NotContains(h.t, r.Body, "whsec_")
		page := dataOf[listOf[shownWebhook]](h, r)
		for _, w := range page.Items {
			ids = append(ids, w.ID)
		}
		if page.NextCursor == nil {
			return ids
		}
		query = "?limit=1&cursor=" + *page.NextCursor
	}
}

// TestWebhooks_AreManagedByTheirOwner checks the life of a webhook: its fields, the secret that
// only the answer of its creation shows, changes, who sees it, and its end.
func TestWebhooks_AreManagedByTheirOwner(t *testing.T) {
	h := newFixture(t)
	w := h.hook(merchant(), `{"url":"https://shop.example/a?b=c"}`)
	require.Regexp(t, "^whsec_[A-Za-z0-9+/]{43}=$", w.Secret)
	require.Equal(t, shownWebhook{
		ID: w.ID, OwnerID: "70", URL: "https://shop.example/a?b=c", Position: w.Position,
		EventTypes: []string{}, MaxBatch: 100, MaxPerSecond: 10, Enabled: true, Secret: w.Secret,
	}, w)
	other := h.hook(otherMerchant(), `{"url":"https://other.example/","enabled":false,
		"eventTypes":["order.paid","sale.closed","order.paid"],"maxBatch":500,"maxPerSecond":1}`)
	require.Equal(t, []string{"order.paid", "sale.closed"}, other.EventTypes)
	require.Equal(t, []any{int64(500), int64(1), false},
		[]any{other.MaxBatch, other.MaxPerSecond, other.Enabled})
	byForm := h.as(merchant(), "POST", "/admin/webhooks",
		"url=https%3A%2F%2Fshop.example%2F&eventTypes=order.paid,order.created", "Content-Type",
		"application/x-www-form-urlencoded")
	form := dataOf[shownWebhook](h, h.want(201, byForm))
	require.Equal(t, []string{"order.paid", "order.created"}, form.EventTypes)
	require.Equal(t, []string{w.ID, form.ID}, h.listHooks(merchant()))
	require.Equal(t, []string{other.ID}, h.listHooks(otherMerchant()))
	require.Equal(t, []string{w.ID, other.ID, form.ID}, h.listHooks(operator()))

	target := "/admin/webhooks/" + w.ID
	shown := h.want(200, h.as(merchant(), "GET", target, ""))
	require.NotContains(t, shown.Body, "ecret")
	for _, who := range []actor{otherMerchant(), buyer(), {ID: "70", Role: seckill.Buyer}} {
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			h.want(403, h.as(who, method, target, ""))
		}
		h.want(403, h.as(who, "GET", target+"/deliveries", ""))
		h.want(403, h.as(who, "POST", target+"/deliveries/"+w.ID+"/retry", ""))
	}
	ofAll := "/admin/webhooks/" + h.hook(operator(), `{"url":"https://example.org/"}`).ID
	h.want(403, h.as(actor{ID: operator().ID, Role: seckill.Merchant}, "GET", ofAll, ""))
	changed := h.want(200, h.as(merchant(), "PATCH", target,
		`{"url":"http://127.0.0.1:9/","eventTypes":["order.paid"],"maxBatch":1,"enabled":false}`))
	w.URL, w.EventTypes, w.MaxBatch, w.Enabled = "http://127.0.0.1:9/", []string{"order.paid"}, 1,
		false
	secret := w.Secret
	w.Secret = ""
	require.Equal(t, w, dataOf[shownWebhook](h, changed))
	all := h.want(200, h.as(merchant(), "PATCH", target, `{"eventTypes":[]}`))
	require.Equal(t, []string{}, dataOf[shownWebhook](h, all).EventTypes)
	rotated := dataOf[shownWebhook](h,
		h.want(200, h.as(operator(), "PATCH", target, `{"rotateSecret":true}`)))
	require.NotEqual(t, secret, rotated.Secret)
	require.Regexp(t, "^whsec_", rotated.Secret)
	require.WithinDuration(t, time.Now().Add(webhook.SecretOverlap), rotated.OldSecretUntil,
		time.Hour)
	h.want(200, h.as(merchant(), "DELETE", target, ""))
	h.want(404, h.as(merchant(), "DELETE", target, ""))
	h.want(404, h.as(merchant(), "GET", target+"/deliveries", ""))
	require.Equal(t, []string{form.ID}, h.listHooks(merchant()))
}

// TestWebhooks_OneOwnerHasAtMostTwenty checks the bound of a merchant's webhooks.
func TestWebhooks_OneOwnerHasAtMostTwenty(t *testing.T) {
	h := newFixture(t)
	for range webhook.MaxEndpoints {
		h.hook(merchant(), `{"url":"https://shop.example/"}`)
	}
	h.want(409, h.as(merchant(), "POST", "/admin/webhooks", `{"url":"https://shop.example/"}`))
	h.hook(otherMerchant(), `{"url":"https://shop.example/"}`)
}

// TestWebhooks_RefuseBadInput checks each field of each call.
func TestWebhooks_RefuseBadInput(t *testing.T) {
	h := newFixture(t)
	target := "/admin/webhooks/" + h.hook(merchant(), `{"url":"https://shop.example/"}`).ID
	refused := func(method, target, body, field string) {
		r := h.want(400, h.as(merchant(), method, target, body))
		require.Equal(t, field, dataOf[struct{ Field string }](h, r).Field, body)
	}
	private := []string{
		"https://localhost.example@10.0.0.1/", "http://shop.example/", "ftp://shop.example/",
		"https://10.1.2.3/", "https://192.168.0.1:8443/", "https://169.254.169.254/latest/",
		"https://[::1]/", "https://[fd00::1]/", "https://[::ffff:10.0.0.1]/", "https://0.0.0.0/",
		"https://100.64.0.1/", "https://[64:ff9b::a00:1]/", "//shop.example/", "https:///x", "x",
		"https://user:word@shop.example/", "https://shop.example/#a", "https://shop.example/\t",
		"https://shop.example/ä", "", "https://shop.example/" + strings.Repeat("a", 2000),
	}
	for field, values := range map[string][]any{
		"maxBatch":     {0, 501, -1, 1.5, "7", nil, true},
		"maxPerSecond": {0, 101, -1, 1.5, "7", nil},
		"enabled":      {"true", 1, nil},
		"eventTypes": {
			"order.paid",
			[]string{"order.lost"},
			[]string{""},
			[]string{"order.paid,order.created"},
			[]int{1},
			map[string]string{},
			nil,
			[][]string{{"order.paid"}},
		},
		"id":       {"x"},
		"secret":   {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		"ownerId":  {"80"},
		"allSales": {true},
		"position": {"0"},
	} {
		for _, v := range values {
			fields := map[string]any{"url": "https://shop.example/", field: v}
			body := string(must.Get(json.Marshal(fields))(t))
			refused("POST", "/admin/webhooks", body, field)
			if field != "id" { // it is the path's
				refused("PATCH", target, body, field)
			}
		}
	}
	for _, v := range private {
		body := string(must.Get(json.Marshal(map[string]string{"url": v}))(t))
		refused("POST", "/admin/webhooks", body, "url")
		refused("PATCH", target, body, "url")
	}
	refused("POST", "/admin/webhooks", `{}`, "url")
	refused("POST", "/admin/webhooks", `{"url":["https://shop.example/"]}`, "url")
	refused("POST", "/admin/webhooks", `{"url":"https://shop.example/","rotateSecret":true}`,
		"rotateSecret")
	refused("PATCH", target, `{"rotateSecret":"yes"}`, "rotateSecret")
	for field, values := range map[string][]string{
		"limit": {"", "0", "101", "x"}, "state": {"", "lost", "DEAD"},
		"cursor": {"x", "d1", "\x00"},
	} {
		for _, v := range values {
			query := "?" + field + "=" + url.QueryEscape(v)
			refused("GET", target+"/deliveries"+query, "", field)
			if field != "state" {
				refused("GET", "/admin/webhooks"+query, "", field)
			}
		}
	}
	for _, id := range []string{"1", "x", strings.Repeat("a", 36), "1%20OR%201=1"} {
		h.want(404, h.as(merchant(), "GET", "/admin/webhooks/"+id, ""))
		h.want(404, h.as(merchant(), "POST", target+"/deliveries/"+id+"/retry", ""))
	}
	kept := dataOf[shownWebhook](h, h.want(200, h.as(merchant(), "GET", target, "")))
	require.Equal(t, "https://shop.example/", kept.URL)
	require.Len(t, h.listHooks(merchant()), 1)
}

// TestWebhooks_GetTheEventsOfAPurchase checks the way from a purchase to the merchant's program:
// the events of own sales, verified by the library with the secret that the API has shown; and the
// deliveries as the owner sees them.
func TestWebhooks_GetTheEventsOfAPurchase(t *testing.T) {
	h := newFixture(t)
	var mu sync.Mutex
	var secret string
	var got []eventItem
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		key, keyErr := standardwebhooks.NewWebhook(secret)
		if err != nil || keyErr != nil || key.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var sent struct{ Data struct{ Items []eventItem } }
		if json.Unmarshal(body, &sent) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got = append(got, sent.Data.Items...)
	}))
	t.Cleanup(receiver.Close)
	mu.Lock()
	w := h.hook(merchant(), `{"url":"`+receiver.URL+`"}`)
	secret = w.Secret
	mu.Unlock()
	others := h.hook(otherMerchant(), `{"url":"`+receiver.URL+`"}`)
	goods := h.sell(nil)
	sn := h.order(buyer(), goods, 1)
	received := func() []eventItem {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
	require.Eventually(t, func() bool { return len(received()) >= 2 }, time.Minute,
		20*time.Millisecond)
	want := h.events(merchant(), "0", 10).Items
	require.Equal(t, want, received(), "the same as the list has")
	require.Equal(t, sn, want[1].OrderSn)
	var sent []shownDelivery
	require.Eventually(t, func() bool {
		sent = h.deliveries(merchant(), w.ID, "delivered")
		n := int64(0)
		for _, d := range sent {
			n += d.Events
		}
		return n == 2
	}, time.Minute, 20*time.Millisecond)
	for _, d := range sent {
		require.Equal(t, []any{int64(1), 200, ""}, []any{d.Attempts, d.Status, d.Problem})
	}
	require.Empty(t, h.deliveries(otherMerchant(), others.ID, ""))
}

func (h *fixture) deliveries(who actor, id, state string) []shownDelivery {
	h.t.Helper()
	query := ""
	if state != "" {
		query = "?state=" + state
	}
	r := h.want(200, h.as(who, "GET", "/admin/webhooks/"+id+"/deliveries"+query, ""))
	return dataOf[listOf[shownDelivery]](h, r).Items
}

// TestWebhooks_DeadDeliveryIsSentAgain checks the call that sends a dead delivery again. The events
// of this one are deleted, so that it is dead again after one attempt.
func TestWebhooks_DeadDeliveryIsSentAgain(t *testing.T) {
	ctx, h := t.Context(), newFixture(t)
	w := h.hook(merchant(), `{"url":"https://127.0.0.1:9/"}`)
	store := h.Endpoints.Store.(webhook.DispatchStore)
	e := must.Get(h.Endpoints.Store.FindEndpoint(ctx, w.ID))(t)
	now := time.Now()
	require.True(t, must.Get(store.ClaimEndpoint(ctx, e, "a lease", now, now.Add(time.Minute)))(t))
	e.Lease = "a lease"
	const id = "01a1fc15-9a10-78e6-83a6-b45fac893a06"
	require.NoError(t, store.SaveProgress(ctx, e, &webhook.Delivery{
		ID: id, EndpointID: e.ID, To: 1, Events: 1, State: webhook.Dead, Attempts: 30, Status: 500,
		Problem: webhook.BadStatus, CreatedAt: now, LastAt: now, EndedAt: now,
	}))
	require.NoError(t, store.ReleaseEndpoint(ctx, e.ID, e.Lease))
	require.Equal(t, []shownDelivery{{
		ID: id, State: "dead", Problem: "STATUS", Events: 1,
		Attempts: 30, Status: 500,
	}}, h.deliveries(merchant(), w.ID, "dead"))
	retry := "/admin/webhooks/" + w.ID + "/deliveries/" + id + "/retry"
	again := dataOf[shownDelivery](h, h.want(200, h.as(merchant(), "POST", retry, "")))
	require.Equal(t, "pending", again.State)
	require.Eventually(t, func() bool {
		dead := h.deliveries(operator(), w.ID, "dead")
		return len(dead) == 1 && dead[0].Attempts == 31 && dead[0].Problem == "EVENTS_DELETED"
	}, time.Minute, 20*time.Millisecond)
	h.want(404, h.as(merchant(), "POST", strings.Replace(retry, id, w.ID, 1), ""))
}

// TestAudit_HasChangesOfWebhooks changes a webhook as its merchant and as an operator. The merchant
// sees both, other merchants see neither, and no entry has the URL's path or a secret.
func TestAudit_HasChangesOfWebhooks(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	r := h.want(201, h.as(merchant(), "POST", "/admin/webhooks",
		`{"url":"https://example.org/hook-of-shop?token=abc"}`))
	id := dataOf[struct{ ID string }](h, r).ID
	one := "/admin/webhooks/" + id
	h.want(200, h.as(operator(), "PATCH", one, `{"enabled":false,"maxBatch":7}`))
	h.want(200, h.as(merchant(), "PATCH", one, `{"enabled":false}`)) // no change, no entry
	h.want(200, h.as(merchant(), "PATCH", one, `{"rotateSecret":true}`))
	h.want(200, h.as(merchant(), "DELETE", one, ""))
	h.want(201, h.as(operator(), "POST", "/admin/webhooks", `{"url":"https://example.org/o"}`))

	type entry struct {
		Action, ActorID, GoodsID string
		From, To                 map[string]any
	}
	trail := func(who actor, query string) []entry {
		r := h.want(200, h.as(who, "GET", "/admin/audit"+query, ""))
		require.NotContains(t, r.Body, "hook-of-shop")
		require.NotContains(t, r.Body, "token=abc")
		require.NotContains(t, r.Body, "whsec_")
		return dataOf[struct{ Items []entry }](h, r).Items
	}
	own := trail(merchant(), "")
	require.Len(t, own, 4)
	require.Equal(t, entry{
		Action: "deleteWebhook", ActorID: "70",
		From: map[string]any{
			"url": "https://example.org", "eventTypes": []any{}, "maxBatch": 7.0,
			"maxPerSecond": 10.0, "enabled": false,
		},
		To: map[string]any{"webhookId": id, "ownerId": "70"},
	}, own[0])
	require.Equal(t, "rotateSecret", own[1].Action)
	require.Equal(t, entry{
		Action: "changeWebhook", ActorID: "1",
		From: map[string]any{"enabled": true, "maxBatch": 100.0},
		To:   map[string]any{"webhookId": id, "ownerId": "70", "enabled": false, "maxBatch": 7.0},
	}, own[2])
	require.Equal(t, "createWebhook", own[3].Action)
	require.Len(t, trail(merchant(), "?action=rotateSecret"), 1)
	require.Empty(t, trail(otherMerchant(), ""))
	require.Empty(t, trail(actor{ID: "1", Role: merchant().Role}, ""),
		"a merchant with an operator's id")
	require.Len(t, trail(operator(), ""), 5)
}

// TestAudit_IsOfTheMerchantsSales lists and pages the entries of two merchants.
func TestAudit_IsOfTheMerchantsSales(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(nil)
	gone := h.draft(nil)
	h.want(200, h.as(merchant(), "DELETE", "/admin/sales/"+gone, ""))
	h.want(200, h.as(operator(), "PATCH", "/admin/sales/"+goods, `{"perBuyerLimit":5}`))
	require.Len(t, h.pages(merchant(), "/admin/audit?limit=2", "id"), 5)
	require.Len(t, h.pages(operator(), "/admin/audit?limit=2", "id"), 5)
	require.Empty(t, h.pages(otherMerchant(), "/admin/audit?limit=2", "id"))
	require.Len(t, h.pages(merchant(), "/admin/audit?limit=2&goodsId="+goods, "id"), 3)
	r := h.want(200, h.as(merchant(), "GET", "/admin/audit?action=change", ""))
	require.Contains(t, r.Body, `"goodsId":"`+goods+`","actorId":"1","actorRole":"operator"`)
	h.want(403, h.as(otherMerchant(), "GET", "/admin/audit?goodsId="+goods, ""))
	h.want(404, h.as(merchant(), "GET", "/admin/audit?goodsId="+gone, ""))
	h.want(400, h.as(merchant(), "GET", "/admin/audit?action=reveal", ""))
}
