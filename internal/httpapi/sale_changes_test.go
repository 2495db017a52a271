package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/badrequests"
)

func TestChangeSale_KeepsAbsentFields(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	const path = "/admin/sales/43"
	change := func(body string) reply { return h.as(merchant(), "PATCH", path, body) }
	r := h.want(200, change(`{"stockDelta":-3,"perBuyerLimit":2,
		"endAt":"2026-11-12T00:00:00+01:00","rate":{"permitsPerSecond":5}}`))
	for _, member := range []string{
		`"stock":7`, `"endAt":"2026-11-11T23:00:00.000Z"`, `"perBuyerLimit":2`,
		`"rate":{"algorithm":"reserve","permitsPerSecond":5,` +
			`"maxBurstSeconds":1,"maxWaitMillis":1000}`,
	} {
		require.Contains(t, r.raw, member)
	}
	r = h.want(409, change(`{"stockDelta":-8}`))
	require.JSONEq(t, `{"available":7}`, string(r.Data))
	h.want(409, change(`{"price":1}`))
	h.want(400, change(`{"startAt":"2026-11-12T00:00:00Z"}`)) // it would end before it starts
	h.want(200, h.as(operator(), "PATCH", path+"?stockDelta=5", ""))

	r = h.as(merchant(), "GET", path+"/audit?limit=1", "")
	require.Contains(t, r.raw, `"actorId":"1","actorRole":"operator","action":"change",`+
		`"from":{"price":1},"to":{"price":2},"at":"2026-11-11T12:00:00.000Z"`)
	require.Len(t, h.pages(merchant(), path+"/audit?limit=1", "id"), 2)
}

func TestDeleteSale_DeletesADraft(t *testing.T) {
	h := newFixture(t)
	id, _ := h.creates("title", `"x"`)
	h.want(200, h.as(merchant(), "DELETE", "/admin/sales/"+id, ""))
	h.want(404, h.as(merchant(), "DELETE", "/admin/sales/"+id, ""))
}

func TestIdempotencyKey_RepeatsTheFirstResponse(t *testing.T) {
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
	require.Equal(t, "CONFLICT", create(merchant(), "k-1", `"b"`).Reason)
	h.want(201, create(otherMerchant(), "k-1", `"b"`)) // each merchant has keys of its own
	require.Equal(t, 2, h.changes())

	h.sell(43)
	h.sell(44)
	add := func(goods string) reply {
		body := `{"stockDelta":5}`
		return h.as(merchant(), "PATCH", "/admin/sales/"+goods, body, "Idempotency-Key", "k-2")
	}
	for range 2 {
		require.Contains(t, add("43").raw, `"stock":15`)
	}
	require.Equal(t, "CONFLICT", add("44").Reason)
}
