package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// buys places a buyer's order and returns its number.
func (h *fixture) buys(path string, goods, quantity int64) string {
	h.t.Helper()
	body := fmt.Sprintf(`{"goodsId":"%d","decrStock":%d}`, goods, quantity)
	r := h.want(202, h.as(buyer(), "POST", "/"+path+"/decrStock", body))
	require.Equal(h.t, "QUEUED", r.Reason)
	require.Equal(h.t, 202, r.Code)
	return dataOf[struct{ OrderSn string }](h, r).OrderSn
}

func TestPurchase_PathThenOrder(t *testing.T) {
	h := newFixture(t)
	h.sell(longID)
	r := h.want(200, h.path(buyer(), longID))
	require.Equal(t, "OK", r.Reason)
	require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	path := dataOf[struct{ RandomPath, ExpiresAt string }](h, r)
	require.Regexp(t, `^[0-9a-f]{32}$`, path.RandomPath)
	require.Equal(t, "2026-11-11T12:01:00.000Z", path.ExpiresAt)

	sn := h.buys(path.RandomPath, longID, 2)
	r = h.as(buyer(), "GET", "/orders/"+sn, "")
	require.JSONEq(t, `{"orderSn":"order-1","status":"created",
		"goodsId":"9007199254740993","buyerId":"7","quantity":2,"amount":399800,
		"name":"Ann Lee","phoneNumber":"+4479460123456",
		"createdAt":"2026-11-11T12:00:00.000Z","payBy":"2026-11-11T13:00:00.000Z"}`, string(r.Data))

	r = h.want(200, h.as(buyer(), "POST", "/orders/order-1/pay", ""))
	require.Contains(t, r.raw, `"status":"paid"`)
	r = h.want(409, h.as(buyer(), "POST", "/orders/order-1/cancel", ""))
	require.Equal(t, "CONFLICT", r.Reason)
}

// TestPurchase_AcceptsFieldsInQueryFormAndJSON checks that a call with a small body reads its
// fields from all three places.
func TestPurchase_AcceptsFieldsInQueryFormAndJSON(t *testing.T) {
	h := newFixture(t)
	f := h.fixture()
	form, goods := "application/x-www-form-urlencoded", text(longID)
	decr, path := "/"+f.Path+"/decrStock", "/randomPath"
	for _, c := range []struct{ name, method, target, body, contentType string }{
		{"query", "POST", path + "?goodsId=" + goods, "", ""},
		{"query, by GET", "GET", path + "?goodsId=" + goods, "", ""},
		{"JSON number", "POST", path, `{"goodsId":` + goods + `}`, ""},
		{"JSON string", "POST", path, `{"goodsId":"` + goods + `"}`, ""},
		{
			"typed", "POST", path, ` {"goodsId":` + goods + "}\r\n ",
			"application/json; charset=UTF-8",
		},
		{"escaped name", "POST", path, `{"goods\u0049d":` + goods + `}`, ""},
		{"form", "POST", path, "goodsId=" + goods, form},
		{"typed, but empty", "POST", path + "?goodsId=" + goods, "", "text/plain"},
		{"query", "POST", decr + "?goodsId=" + goods + "&decrStock=3", "", ""},
		{"query and JSON", "POST", decr + "?goodsId=" + goods, `{"decrStock":3}`, ""},
		{"form and query", "POST", decr + "?decrStock=3", "goodsId=" + goods, form},
		{"no quantity", "POST", decr, `{"goodsId":` + goods + `}`, ""},
	} {
		var header []string
		if c.contentType != "" {
			header = []string{"Content-Type", c.contentType}
		}
		want := http.StatusOK
		if strings.HasPrefix(c.target, decr) {
			want = http.StatusAccepted
		}
		r := h.as(buyer(), c.method, c.target, c.body, header...)
		require.Equal(t, want, r.Status, "%s: %s", c.name, r.raw)
	}
}

func TestPurchase_RefusesBySaleState(t *testing.T) {
	h := newFixture(t)
	for _, c := range []struct {
		change       func(s *sale)
		status       int
		reason, data string
	}{
		{func(s *sale) { s.Stock = 0 }, 409, "SOLD_OUT", `{"available":0}`},
		{
			func(s *sale) { s.StartAt, s.EndAt = h.now.Add(1), h.now.Add(9e9) }, 409, "NOT_STARTED",
			`{"startAt":"2026-11-11T12:00:00.000Z"}`,
		},
		{func(s *sale) { s.Status = seckill.Closed }, 409, "ENDED", `{}`},
		{func(s *sale) { s.Status = seckill.Draft }, 404, "NOT_FOUND", `{}`},
	} {
		h.sell(43, c.change)
		r := h.want(c.status, h.path(buyer(), 43))
		require.Equal(t, c.reason, r.Reason)
		require.JSONEq(t, c.data, string(r.Data))
	}
	require.Equal(t, 0, h.changes())
}

func TestPurchase_SoldOutNamesTheUnitsLeft(t *testing.T) {
	h := newFixture(t)
	f := h.fixture()
	r := h.as(buyer(), "POST", "/"+f.Path+"/decrStock?decrStock=11&goodsId="+text(longID), "")
	require.Equal(t, "SOLD_OUT", r.Reason)
	require.JSONEq(t, `{"available":10}`, string(r.Data))
}

func TestSales_ArePublic(t *testing.T) {
	h := newFixture(t)
	h.sell(longID)
	h.sell(43)
	r := h.want(200, h.ask("GET", "/sales/"+text(longID), ""))
	require.Equal(t, "no-cache", r.Header.Get("Cache-Control"))
	require.JSONEq(t, `{"goodsId":"9007199254740993","title":"A phone","price":199900,
		"perBuyerLimit":1000,"phase":"ongoing","available":10,"total":10,
		"startAt":"2026-11-11T11:59:00.000Z","endAt":"2026-11-11T13:00:00.000Z",
		"serverTime":"2026-11-11T12:00:00.000Z"}`, string(r.Data))
	h.want(200, h.ask("GET", "/sales", "", "Authorization", "Bearer garbage"))
	h.want(200, h.ask("HEAD", "/sales", ""))
}

// pages reads a list to its end and returns one field of every item.
func (h *fixture) pages(who actor, target, field string) (keys []string) {
	h.t.Helper()
	type list struct {
		Items      []map[string]any
		NextCursor *string
	}
	for cursor := ""; ; {
		l := dataOf[list](h, h.want(200, h.as(who, "GET", target+cursor, "")))
		for _, item := range l.Items {
			keys = append(keys, item[field].(string))
		}
		if l.NextCursor == nil {
			return keys
		}
		cursor = "&cursor=" + url.QueryEscape(*l.NextCursor)
	}
}

func TestLists_ArePaged(t *testing.T) {
	h := newFixture(t)
	for id := int64(1); id <= 5; id++ {
		h.sell(id)
		h.order("order-"+text(id), 3, buyer())
	}
	h.order("order-9", 3, otherBuyer())
	sales := []string{"5", "4", "3", "2", "1"}
	orders := []string{"order-5", "order-4", "order-3", "order-2", "order-1"}
	for _, limit := range []string{"1", "2", "5", "100"} {
		require.Equal(t, sales, h.pages(buyer(), "/sales?limit="+limit, "goodsId"))
		require.Equal(t, sales, h.pages(merchant(), "/admin/sales?limit="+limit, "goodsId"))
		require.Equal(t, orders, h.pages(buyer(), "/orders?limit="+limit, "orderSn"))
		require.Len(t, h.pages(merchant(), "/admin/sales/3/orders?limit="+limit, "orderSn"), 6)
	}
	require.Empty(t, h.pages(merchant(), "/admin/sales/3/orders?status=paid", "orderSn"))
	r := h.as(otherMerchant(), "GET", "/admin/sales", "")
	require.JSONEq(t, `{"items":[],"nextCursor":null}`, string(r.Data))
}

// TestOrderLists_MaskNames checks that lists mask a buyer's name, because many people read them.
// Only the buyer can read a single order, so that response shows the whole name.
func TestOrderLists_MaskNames(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	h.order("order-1", 43, buyer())
	h.order("order-2", 43, actor{ID: buyer().ID, Phone: "12345678"})
	for target, who := range map[string]actor{
		"/orders": buyer(), "/admin/sales/43/orders": merchant(),
	} {
		r := h.want(200, h.as(who, "GET", target, ""))
		require.NotContains(t, r.raw, "Ann Lee")
		require.NotContains(t, r.raw, "12345678")
		require.Contains(t, r.raw, `"name":"A***","phoneNumber":"**********3456"`)
	}
}

func TestFindOrder_ShowsEveryState(t *testing.T) {
	h := newFixture(t)
	failed := newOrder("order-f", 43, buyer(), 1, 1, h.now)
	failed.Status, failed.FailureReason = order.Failed, order.FailedOversold
	failed.ClosedAt = failed.CreatedAt
	h.orders["order-f"] = failed
	r := h.as(buyer(), "GET", "/orders/order-f", "")
	require.Contains(t, r.raw, `"status":"failed","failureReason":"NO_STOCK"`)
	require.NotContains(t, r.raw, "paidAt")
	require.Equal(t, strings.Count(r.raw, "T12:00:00.000Z"), 2)
}
