package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

func TestPurchase_PathThenOrder(t *testing.T) {
	h := newFixture(t)
	h.sell(longID)

	r := h.as(buyer(), "POST", "/randomPath?goodsId="+text(longID), "")
	require.Equal(t, http.StatusOK, r.Status, r.raw)
	require.Equal(t, "OK", r.Reason)
	require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	var path struct{ RandomPath, ExpiresAt string }
	r.into(h, &path)
	require.Regexp(t, `^[0-9a-f]{32}$`, path.RandomPath)
	require.Equal(t, "2026-11-11T12:01:00.000Z", path.ExpiresAt)

	r = h.as(buyer(), "POST", "/"+path.RandomPath+"/decrStock", `{"goodsId":"`+text(longID)+`","decrStock":2}`)
	require.Equal(t, http.StatusAccepted, r.Status, r.raw)
	require.Equal(t, "QUEUED", r.Reason)
	require.Equal(t, 202, r.Code)
	var queued struct{ OrderSn string }
	r.into(h, &queued)

	r = h.as(buyer(), "GET", "/orders/"+queued.OrderSn, "")
	require.JSONEq(t, `{"orderSn":"order-1","status":"created","goodsId":"9007199254740993","buyerId":"7","quantity":2,"amount":399800,
		"name":"Ann Lee","phoneNumber":"+4479460123456","createdAt":"2026-11-11T12:00:00.000Z","payBy":"2026-11-11T13:00:00.000Z"}`, string(r.Data))

	r = h.as(buyer(), "POST", "/orders/order-1/pay", "")
	require.Equal(t, http.StatusOK, r.Status, r.raw)
	require.Contains(t, string(r.Data), `"status":"paid"`)
	r = h.as(buyer(), "POST", "/orders/order-1/cancel", "")
	require.Equal(t, http.StatusConflict, r.Status, r.raw)
	require.Equal(t, "CONFLICT", r.Reason)
}

// A query or form parameter serves wherever a small body does.
func TestPurchase_AcceptsFieldsInQueryFormAndJSON(t *testing.T) {
	h := newFixture(t)
	f := h.fixture()
	goods := text(longID)
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for name, r := range map[string]reply{
		"query":                   h.as(buyer(), "POST", "/randomPath?goodsId="+goods, ""),
		"query, by GET":           h.as(buyer(), "GET", "/randomPath?goodsId="+goods, ""),
		"JSON number":             h.as(buyer(), "POST", "/randomPath", `{"goodsId":`+goods+`}`),
		"JSON string":             h.as(buyer(), "POST", "/randomPath", `{"goodsId":"`+goods+`"}`),
		"JSON with a type":        h.as(buyer(), "POST", "/randomPath", ` {"goodsId":`+goods+"}\r\n ", "Content-Type", "application/json; charset=UTF-8"),
		"escaped name":            h.as(buyer(), "POST", "/randomPath", `{"goods\u0049d":`+goods+`}`),
		"form":                    h.as(buyer(), "POST", "/randomPath", "goodsId="+goods, form...),
		"empty body and its type": h.as(buyer(), "POST", "/randomPath?goodsId="+goods, "", "Content-Type", "text/plain"),
	} {
		require.Equal(t, http.StatusOK, r.Status, "%s: %s", name, r.raw)
	}
	for name, r := range map[string]reply{
		"query":          h.as(buyer(), "POST", "/"+f.Path+"/decrStock?goodsId="+goods+"&decrStock=3", ""),
		"query and JSON": h.as(buyer(), "POST", "/"+f.Path+"/decrStock?goodsId="+goods, `{"decrStock":3}`),
		"form and query": h.as(buyer(), "POST", "/"+f.Path+"/decrStock?decrStock=3", "goodsId="+goods, form...),
		"left out":       h.as(buyer(), "POST", "/"+f.Path+"/decrStock", `{"goodsId":`+goods+`}`),
	} {
		require.Equal(t, http.StatusAccepted, r.Status, "%s: %s", name, r.raw)
	}
}

func TestPurchase_RefusesBySaleState(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	change := func(f func(s *seckill.Sale)) {
		h.mu.Lock()
		defer h.mu.Unlock()
		s := h.sales[43]
		f(&s)
		h.sales[43] = s
	}
	ask := func() reply { return h.as(buyer(), "POST", "/randomPath?goodsId=43", "") }

	change(func(s *seckill.Sale) { s.Stock = 0 })
	r := ask()
	require.Equal(t, http.StatusConflict, r.Status)
	require.Equal(t, "SOLD_OUT", r.Reason)
	require.JSONEq(t, `{"available":0}`, string(r.Data))

	change(func(s *seckill.Sale) { s.StartAt, s.EndAt = h.now.Add(1), h.now.Add(9e9) })
	r = ask()
	require.Equal(t, "NOT_STARTED", r.Reason)
	require.JSONEq(t, `{"startAt":"2026-11-11T12:00:00.000Z"}`, string(r.Data))

	change(func(s *seckill.Sale) { s.Status = seckill.Closed })
	require.Equal(t, "ENDED", ask().Reason)

	change(func(s *seckill.Sale) { s.Status = seckill.Draft })
	require.Equal(t, "NOT_FOUND", ask().Reason)
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
	r := h.ask(nil, "GET", "/sales/"+text(longID), "")
	require.Equal(t, http.StatusOK, r.Status)
	require.Equal(t, "no-cache", r.Header.Get("Cache-Control"))
	require.JSONEq(t, `{"goodsId":"9007199254740993","title":"A phone","price":199900,"perBuyerLimit":1000,"phase":"ongoing","available":10,"total":10,
		"startAt":"2026-11-11T11:59:00.000Z","endAt":"2026-11-11T13:00:00.000Z","serverTime":"2026-11-11T12:00:00.000Z"}`, string(r.Data))
	require.Equal(t, http.StatusOK, h.ask(nil, "GET", "/sales", "", "Authorization", "Bearer garbage").Status)
	require.Equal(t, http.StatusOK, h.ask(nil, "HEAD", "/sales", "").Status)
}

// listOf is the data of a list.
type listOf struct {
	Items      []map[string]any
	NextCursor *string
}

func (h *fixture) pages(who *seckill.Actor, target, key string) (keys []string) {
	h.t.Helper()
	for cursor := ""; ; {
		r := h.ask(who, "GET", target+cursor, "")
		require.Equal(h.t, http.StatusOK, r.Status, r.raw)
		var l listOf
		r.into(h, &l)
		for _, item := range l.Items {
			keys = append(keys, item[key].(string))
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
	who, seller := buyer(), merchant()
	newest := []string{"5", "4", "3", "2", "1"}
	for _, limit := range []string{"1", "2", "5", "100"} {
		require.Equal(t, newest, h.pages(nil, "/sales?limit="+limit, "goodsId"))
		require.Equal(t, newest, h.pages(&seller, "/admin/sales?limit="+limit, "goodsId"))
		require.Equal(t, []string{"order-5", "order-4", "order-3", "order-2", "order-1"}, h.pages(&who, "/orders?limit="+limit, "orderSn"))
		require.Len(t, h.pages(&seller, "/admin/sales/3/orders?limit="+limit, "orderSn"), 6)
	}
	require.Empty(t, h.pages(&seller, "/admin/sales/3/orders?status=paid", "orderSn"))
	r := h.as(otherMerchant(), "GET", "/admin/sales", "")
	require.JSONEq(t, `{"items":[],"nextCursor":null}`, string(r.Data))
}

// Lists are read by many; an order alone is its buyer's.
func TestOrderLists_MaskNames(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	h.order("order-1", 43, buyer())
	h.order("order-2", 43, seckill.Actor{ID: buyer().ID, Phone: "12345678"})
	for _, r := range []reply{h.as(buyer(), "GET", "/orders", ""), h.as(merchant(), "GET", "/admin/sales/43/orders", "")} {
		require.Equal(t, http.StatusOK, r.Status, r.raw)
		require.NotContains(t, r.raw, "Ann Lee")
		require.NotContains(t, r.raw, "12345678")
		require.Contains(t, r.raw, `"name":"A***","phoneNumber":"**********3456"`)
	}
}

func TestFindOrder_ShowsEveryState(t *testing.T) {
	h := newFixture(t)
	h.orders["order-f"] = order.Order{
		OrderLine: reservation.OrderLine{OrderSn: "order-f", BuyerID: 7, Quantity: 1}, GoodsID: 43, Status: order.Failed,
		FailureReason: order.FailedOversold, CreatedAt: h.now, ClosedAt: h.now,
	}
	r := h.as(buyer(), "GET", "/orders/order-f", "")
	require.Contains(t, r.raw, `"status":"failed","failureReason":"NO_STOCK"`)
	require.NotContains(t, r.raw, "paidAt")
	require.Equal(t, strings.Count(r.raw, "T12:00:00.000Z"), 2)
}
