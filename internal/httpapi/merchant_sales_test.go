package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/badrequests"
)

func TestCreateSale_CreatesADraft(t *testing.T) {
	h := newFixture(t)
	r := h.as(merchant(), "POST", "/admin/sales", badrequests.NewSale("endAt", `"2026-11-11T14:00:00.0009+02:00"`), "Content-Type", "application/json")
	require.Equal(t, http.StatusBadRequest, r.Status, "it ends at its start")
	r = h.as(merchant(), "POST", "/admin/sales", badrequests.NewSale("rate", `{"permitsPerSecond":0.5,"maxWaitMillis":0}`))
	require.Equal(t, http.StatusCreated, r.Status, r.raw)
	require.Equal(t, "CREATED", r.Reason)
	var sale struct{ GoodsID, Title, Status, StartAt, EndAt, MerchantID string }
	r.into(h, &sale)
	require.Equal(t, "70", sale.MerchantID)
	require.Equal(t, "draft", sale.Status)
	require.Equal(t, "2026-11-11T12:00:00.000Z", sale.StartAt)
	require.Equal(t, "2099-11-11T12:00:00.000Z", sale.EndAt)
	require.Contains(t, r.raw, `"stock":10`)
	require.Contains(t, r.raw, `"perBuyerLimit":1,"rate":{"algorithm":"reserve","permitsPerSecond":0.5,"maxBurstSeconds":1,"maxWaitMillis":0}`)

	one := "/admin/sales/" + sale.GoodsID
	require.Equal(t, "NOT_FOUND", h.ask(nil, "GET", "/sales/"+sale.GoodsID, "").Reason, "a draft is not shown")
	for range 2 {
		r = h.as(merchant(), "POST", one+"/expose", "")
		require.Equal(t, http.StatusOK, r.Status, r.raw)
		require.Contains(t, r.raw, `"status":"exposed","phase":"ongoing"`)
	}
	require.Equal(t, http.StatusOK, h.as(operator(), "GET", one, "").Status)
	r = h.as(merchant(), "GET", one+"/ledger", "")
	require.JSONEq(t, `{"total":10,"available":10,"pending":0,"sold":0,"balanced":true,"epoch":1,"database":{"stock":0,"active":0}}`, string(r.Data))
	for range 2 {
		r = h.as(merchant(), "POST", one+"/close", "")
		require.Contains(t, r.raw, `"status":"closed"`)
	}
	require.Equal(t, "CONFLICT", h.as(merchant(), "POST", one+"/expose", "").Reason)
}

// Text is text: what would be code elsewhere is kept and given back as it came.
func TestCreateSale_AcceptsAnyTitle(t *testing.T) {
	h := newFixture(t)
	for json, want := range map[string]string{
		`"'); DROP TABLE goods; --"`:             `'); DROP TABLE goods; --`,
		`"return redis.call('FLUSHALL')"`:        `return redis.call('FLUSHALL')`,
		`"<script>alert(1)</script>"`:            `<script>alert(1)</script>`,
		`"手机 \ud83d\udcf1 \u2028 \\ \" {{7*7}}"`: "手机 📱 \u2028 \\ \" {{7*7}}",
	} {
		r := h.as(merchant(), "POST", "/admin/sales", badrequests.NewSale("title", json))
		require.Equal(t, http.StatusCreated, r.Status, r.raw)
		var sale struct{ GoodsID, Title string }
		r.into(h, &sale)
		require.Equal(t, want, sale.Title)
		r = h.as(merchant(), "GET", "/admin/sales/"+sale.GoodsID, "")
		r.into(h, &sale)
		require.Equal(t, want, sale.Title)
	}
}

func TestCreateSale_AcceptsAForm(t *testing.T) {
	h := newFixture(t)
	r := h.as(merchant(), "POST", "/admin/sales?rate.permitsPerSecond=2.5e1&rate.algorithm=token_bucket",
		"title=A+phone&price=0&stock=100000000&startAt=2026-11-11T12:00:00%2B02:00&endAt=2026-11-12T00:00:00Z&perBuyerLimit=1000",
		"Content-Type", "application/x-www-form-urlencoded")
	require.Equal(t, http.StatusCreated, r.Status, r.raw)
	require.Contains(t, r.raw, `"startAt":"2026-11-11T10:00:00.000Z"`)
	require.Contains(t, r.raw, `"algorithm":"token_bucket","permitsPerSecond":25,`)
}

func TestMerchantSales_FollowRoles(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	who := operator()
	require.Equal(t, []string{"43"}, h.pages(&who, "/admin/sales?limit=5", "goodsId"))
	for _, r := range []reply{
		h.as(buyer(), "GET", "/admin/sales/43", ""),
		h.as(seckill.Actor{ID: merchant().ID, Role: seckill.Buyer}, "POST", "/admin/sales/43/close", ""), // the number alone is not enough
	} {
		require.Equal(t, "FORBIDDEN", r.Reason)
	}
	h.order("order-1", 43, buyer())
	r := h.as(seckill.Actor{ID: buyer().ID, Role: seckill.Merchant}, "POST", "/orders/order-1/cancel", "")
	require.Equal(t, "FORBIDDEN", r.Reason)
	require.Zero(t, h.changes())
}

// The head of the shipping list is asked for without its rows being read.
func TestExport_HeadReadsNoRows(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	for i := range 1200 {
		h.order(fmt.Sprintf("order-%05d", i), 43, buyer())
	}
	r := h.as(merchant(), "HEAD", "/admin/sales/43/orders?format=csv", "")
	require.Equal(t, http.StatusOK, r.Status)
	require.Contains(t, r.Header.Get("Content-Type"), "text/csv")
	require.Equal(t, 1, h.reads, "the first, before it is known that it is a file")
}
