package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/badrequests"
)

// creates makes a draft with one changed field. It returns the goods id and the response.
func (h *fixture) creates(field, value string) (goodsID string, r reply) {
	h.t.Helper()
	r = h.want(201, h.as(merchant(), "POST", "/admin/sales", badrequests.NewSale(field, value)))
	return dataOf[struct{ GoodsID string }](h, r).GoodsID, r
}

func TestCreateSale_CreatesADraft(t *testing.T) {
	h := newFixture(t)
	endsAtItsStart := badrequests.NewSale("endAt", `"2026-11-11T14:00:00.0009+02:00"`)
	h.want(400, h.as(merchant(), "POST", "/admin/sales", endsAtItsStart))
	id, r := h.creates("rate", `{"permitsPerSecond":0.5,"maxWaitMillis":0}`)
	require.Equal(t, "CREATED", r.Reason)
	for _, member := range []string{
		`"merchantId":"70"`, `"status":"draft"`, `"stock":10`, `"perBuyerLimit":1`,
		`"startAt":"2026-11-11T12:00:00.000Z","endAt":"2099-11-11T12:00:00.000Z"`,
		`"rate":{"algorithm":"reserve","permitsPerSecond":0.5,` +
			`"maxBurstSeconds":1,"maxWaitMillis":0}`,
	} {
		require.Contains(t, r.raw, member)
	}

	one := "/admin/sales/" + id
	require.Equal(t, "NOT_FOUND", h.ask("GET", "/sales/"+id, "").Reason, "a draft is not shown")
	for range 2 {
		r = h.want(200, h.as(merchant(), "POST", one+"/expose", ""))
		require.Contains(t, r.raw, `"status":"exposed","phase":"ongoing"`)
	}
	h.want(200, h.as(operator(), "GET", one, ""))
	r = h.as(merchant(), "GET", one+"/ledger", "")
	require.JSONEq(t, `{"total":10,"available":10,"pending":0,"sold":0,"balanced":true,"epoch":1,
		"database":{"stock":0,"active":0}}`, string(r.Data))
	for range 2 {
		r = h.as(merchant(), "POST", one+"/close", "")
		require.Contains(t, r.raw, `"status":"closed"`)
	}
	require.Equal(t, "CONFLICT", h.as(merchant(), "POST", one+"/expose", "").Reason)
}

// TestCreateSale_AcceptsAnyTitle checks that the API stores and returns titles with markup or code
// unchanged.
func TestCreateSale_AcceptsAnyTitle(t *testing.T) {
	h := newFixture(t)
	for json, want := range map[string]string{
		`"'); DROP TABLE goods; --"`:             `'); DROP TABLE goods; --`,
		`"return redis.call('FLUSHALL')"`:        `return redis.call('FLUSHALL')`,
		`"<script>alert(1)</script>"`:            `<script>alert(1)</script>`,
		`"手机 \ud83d\udcf1 \u2028 \\ \" {{7*7}}"`: "手机 📱 \u2028 \\ \" {{7*7}}",
	} {
		id, created := h.creates("title", json)
		for _, r := range []reply{created, h.as(merchant(), "GET", "/admin/sales/"+id, "")} {
			require.Equal(t, want, dataOf[struct{ Title string }](h, r).Title)
		}
	}
}

func TestCreateSale_AcceptsAForm(t *testing.T) {
	h := newFixture(t)
	target := "/admin/sales?rate.permitsPerSecond=2.5e1&rate.algorithm=token_bucket"
	form := "title=A+phone&price=0&stock=100000000&perBuyerLimit=1000" +
		"&startAt=2026-11-11T12:00:00%2B02:00&endAt=2026-11-12T00:00:00Z"
	r := h.want(201, h.as(merchant(), "POST", target, form,
		"Content-Type", "application/x-www-form-urlencoded"))
	require.Contains(t, r.raw, `"startAt":"2026-11-11T10:00:00.000Z"`)
	require.Contains(t, r.raw, `"algorithm":"token_bucket","permitsPerSecond":25,`)
}

func TestMerchantSales_FollowRoles(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	h.order("order-1", 43, buyer())
	require.Equal(t, []string{"43"}, h.pages(operator(), "/admin/sales?limit=5", "goodsId"))
	for _, c := range []struct {
		who            actor
		method, target string
	}{
		{buyer(), "GET", "/admin/sales/43"},
		// The owner's id alone is not sufficient: the API also checks the role.
		{actor{ID: merchant().ID, Role: seckill.Buyer}, "POST", "/admin/sales/43/close"},
		{actor{ID: buyer().ID, Role: seckill.Merchant}, "POST", "/orders/order-1/cancel"},
	} {
		require.Equal(t, "FORBIDDEN", h.as(c.who, c.method, c.target, "").Reason, c.target)
	}
	require.Zero(t, h.changes())
}

func TestExport_HeadReadsNoRows(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	for i := range 1200 {
		h.order(fmt.Sprintf("order-%05d", i), 43, buyer())
	}
	r := h.want(200, h.as(merchant(), "HEAD", "/admin/sales/43/orders?format=csv", ""))
	require.Contains(t, r.Header.Get("Content-Type"), "text/csv")
	require.Equal(t, 1, h.reads,
		"HEAD reads only the first page, because its error sets the status")
}
