package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/badrequests"
)

func TestChangeSale_KeepsAbsentFields(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	r := h.as(merchant(), "PATCH", "/admin/sales/43", `{"stockDelta":-3,"perBuyerLimit":2,"endAt":"2026-11-12T00:00:00+01:00","rate":{"permitsPerSecond":5}}`)
	require.Equal(t, http.StatusOK, r.Status, r.raw)
	require.Contains(t, r.raw, `"stock":7`)
	require.Contains(t, r.raw, `"endAt":"2026-11-11T23:00:00.000Z","perBuyerLimit":2,"rate":{"algorithm":"reserve","permitsPerSecond":5,"maxBurstSeconds":1,"maxWaitMillis":1000}`)
	r = h.as(merchant(), "PATCH", "/admin/sales/43", `{"stockDelta":-8}`)
	require.Equal(t, "CONFLICT", r.Reason)
	require.JSONEq(t, `{"available":7}`, string(r.Data))
	require.Equal(t, "CONFLICT", h.as(merchant(), "PATCH", "/admin/sales/43", `{"price":1}`).Reason)
	r = h.as(merchant(), "PATCH", "/admin/sales/43", `{"startAt":"2026-11-12T00:00:00Z"}`)
	require.Equal(t, "BAD_REQUEST", r.Reason, "it would end before it starts")
	require.Equal(t, http.StatusOK, h.as(operator(), "PATCH", "/admin/sales/43?stockDelta=5", "").Status, "an operator, by the query")

	r = h.as(merchant(), "GET", "/admin/sales/43/audit?limit=1", "")
	require.Contains(t, r.raw, `"actorId":"1","actorRole":"operator","action":"change","from":{"price":1},"to":{"price":2},"at":"2026-11-11T12:00:00.000Z"`)
	who := merchant()
	require.Len(t, h.pages(&who, "/admin/sales/43/audit?limit=1", "id"), 2)
}

func TestDeleteSale_DeletesADraft(t *testing.T) {
	h := newFixture(t)
	r := h.as(merchant(), "POST", "/admin/sales", badrequests.NewSale("title", `"x"`))
	var sale struct{ GoodsID string }
	r.into(h, &sale)
	require.Equal(t, http.StatusOK, h.as(merchant(), "DELETE", "/admin/sales/"+sale.GoodsID, "").Status)
	require.Equal(t, "NOT_FOUND", h.as(merchant(), "DELETE", "/admin/sales/"+sale.GoodsID, "").Reason)
}

func TestIdempotencyKey_RepeatsTheFirstResponse(t *testing.T) {
	h := newFixture(t)
	create := func(who seckill.Actor, key, body string) reply {
		return h.as(who, "POST", "/admin/sales", body, "Idempotency-Key", key)
	}
	first := create(merchant(), "k-1", badrequests.NewSale("title", `"a"`))
	require.Equal(t, http.StatusCreated, first.Status, first.raw)
	for _, key := range []string{"k-1", `"k-1"`} {
		again := create(merchant(), key, badrequests.NewSale("title", `"a"`))
		require.Equal(t, http.StatusCreated, again.Status)
		require.JSONEq(t, string(first.Data), string(again.Data))
	}
	require.Equal(t, "CONFLICT", create(merchant(), "k-1", badrequests.NewSale("title", `"b"`)).Reason)
	other := create(otherMerchant(), "k-1", badrequests.NewSale("title", `"b"`))
	require.Equal(t, http.StatusCreated, other.Status, "a key is its merchant's own")
	require.Equal(t, 2, h.changes())

	h.sell(43)
	h.sell(44)
	for range 2 {
		r := h.as(merchant(), "PATCH", "/admin/sales/43", `{"stockDelta":5}`, "Idempotency-Key", "k-2")
		require.Contains(t, r.raw, `"stock":15`)
	}
	require.Equal(t, "CONFLICT", h.as(merchant(), "PATCH", "/admin/sales/44", `{"stockDelta":5}`, "Idempotency-Key", "k-2").Reason)
}
