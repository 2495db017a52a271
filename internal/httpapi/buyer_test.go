package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

const longID = "9007199254740993" // 2^53+1: a double would round it

func TestPurchase_PathThenOrder(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(nil)
	require.Greater(t, len(goods), len(longID), "a double would round the id")
	r := h.want(200, h.path(buyer(), goods))
	require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	path := dataOf[struct {
		RandomPath string
		ExpiresAt  time.Time
	}](h, r)
	require.Regexp(t, `^[0-9a-f]{32}$`, path.RandomPath)
	require.WithinDuration(t, time.Now().Add(time.Minute), path.ExpiresAt, 50*time.Second)

	sn := h.order(buyer(), goods, 2)
	again := h.want(202, h.as(buyer(), "POST",
		"/"+dataOf[struct{ RandomPath string }](h, h.path(buyer(), goods)).RandomPath+"/decrStock",
		`{"goodsId":`+goods+`}`))
	require.Equal(t, "/orders/"+dataOf[struct{ OrderSn string }](h, again).OrderSn,
		again.Header.Get("Location"))
	r = h.as(buyer(), "GET", "/orders/"+sn, "")
	for _, member := range []string{
		`"orderSn":"` + sn + `","status":"created","goodsId":"` + goods + `","buyerId":"7"`,
		`"quantity":2,"amount":399800,"name":"Ann Lee","phoneNumber":"+4479460123456"`,
	} {
		require.Contains(t, r.Body, member)
	}
	require.Contains(t, r.Body, `"currency":"CNY"`)
	require.NotContains(t, r.Body, "paidAt")
	for range 2 {
		r = h.want(200, h.as(buyer(), "POST", "/orders/"+sn+"/pay", ""))
		require.Contains(t, r.Body, `"status":"paid"`)
	}
	require.Equal(t, "CONFLICT", h.as(buyer(), "POST", "/orders/"+sn+"/cancel", "").Reason)
}

// TestOrderStream_SendsTheWholeOrder checks that the stream of an order has what GET has: the
// address too.
func TestOrderStream_SendsTheWholeOrder(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	sn := h.order(buyer(), h.sell(nil), 1)
	h.want(200, h.as(buyer(), "PUT", "/orders/"+sn+"/shipping",
		`{"name":"Ann Lee","line1":"1 High Street","city":"Leeds","country":"GB"}`))
	h.want(200, h.as(buyer(), "POST", "/orders/"+sn+"/pay", ""))
	one := h.want(200, h.as(buyer(), "GET", "/orders/"+sn, ""))
	require.Contains(t, one.Body, "1 High Street")
	_, stream := h.do("GET", "/orders/"+sn+"/events", "", "Authorization", h.bearer(buyer()))
	_, sent, _ := strings.Cut(stream, "data: ")
	require.JSONEq(t, string(one.Data), sent)
}

// TestPurchase_AcceptsFieldsInQueryFormAndJSON checks that a call with a small body reads its
// fields from all three places.
func TestPurchase_AcceptsFieldsInQueryFormAndJSON(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods, form := h.sell(nil), "application/x-www-form-urlencoded"
	used := dataOf[struct{ RandomPath string }](h, h.path(buyer(), goods)).RandomPath
	decr, path := "/"+used+"/decrStock", "/randomPath"
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
		{"query", "POST", decr + "?goodsId=" + goods + "&decrStock=1", "", ""},
		{"query and JSON", "POST", decr + "?goodsId=" + goods, `{"decrStock":1}`, ""},
		{"form and query", "POST", decr + "?decrStock=1", "goodsId=" + goods, form},
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
		require.Equal(t, want, r.Status, "%s: %s", c.name, r.Body)
	}
}

func TestPurchase_RefusesBySaleState(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	gone, closed := h.sell(sale{"stock": 1}), h.sell(nil)
	h.order(buyer(), gone, 1)
	h.want(200, h.as(merchant(), "POST", "/admin/sales/"+closed+"/close", ""))
	for _, c := range []struct {
		goods, reason, data string
		status              int
	}{
		{gone, "SOLD_OUT", `{"available":0}`, 409},
		{
			h.sell(sale{"startAt": "2096-11-11T12:00:00Z", "endAt": "2096-11-12T12:00:00Z"}),
			"NOT_STARTED", `{"startAt":"2096-11-11T12:00:00.000Z"}`, 409,
		},
		{closed, "ENDED", `{}`, 409},
		{h.draft(nil), "NOT_FOUND", `{}`, 404},
	} {
		var r reply
		refused := func() bool { // a cached view may still have the last unit
			r = h.path(buyer(), c.goods)
			return r.Status != http.StatusOK
		}
		require.Eventually(t, refused, time.Minute, 100*time.Millisecond)
		h.want(c.status, r)
		require.Equal(t, c.reason, r.Reason)
		require.JSONEq(t, c.data, string(r.Data))
	}
}

func TestSales_ArePublic(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(sale{"startAt": "2020-11-11T12:00:00+01:00", "endAt": "2096-11-11T12:00:00Z"})
	r := h.want(200, h.ask("GET", "/sales/"+goods, ""))
	require.Equal(t, "no-cache", r.Header.Get("Cache-Control"))
	require.Contains(t, r.Body, `{"goodsId":"`+goods+`","title":"A phone","price":199900,`+
		`"perBuyerLimit":1000,"admission":"rate","accessCode":"none","phase":"ongoing",`+
		`"available":10,"total":10,`+
		`"startAt":"2020-11-11T11:00:00.000Z","endAt":"2096-11-11T12:00:00.000Z","serverTime":"`)
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

func TestLists_ArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	var sales, orders []string
	for range 5 {
		sales = append([]string{h.sell(nil)}, sales...)
		time.Sleep(2 * time.Millisecond) // the ids of one millisecond have no order
	}
	for range 5 {
		orders = append([]string{h.order(buyer(), sales[0], 1)}, orders...)
	}
	h.order(otherBuyer(), sales[0], 1)
	ofSale := "/admin/sales/" + sales[0] + "/orders?limit="
	for _, limit := range []string{"1", "2", "5", "100"} {
		require.Equal(t, sales, h.pages(buyer(), "/sales?limit="+limit, "goodsId"))
		require.Equal(t, sales, h.pages(merchant(), "/admin/sales?limit="+limit, "goodsId"))
		require.Equal(t, sales, h.pages(operator(), "/admin/sales?limit="+limit, "goodsId"))
		require.Equal(t, orders, h.pages(buyer(), "/orders?limit="+limit, "orderSn"))
		require.Len(t, h.pages(merchant(), ofSale+limit, "orderSn"), 6)
	}
	require.Empty(t, h.pages(merchant(), ofSale+"5&status=paid", "orderSn"))
	r := h.as(otherMerchant(), "GET", "/admin/sales", "")
	require.JSONEq(t, `{"items":[],"nextCursor":null}`, string(r.Data))
}

// TestOrderLists_PathUsedLateIsNewest checks that a list follows the times of the orders. An order
// number has the time of its path, which a buyer may use up to a minute later than a newer one.
func TestOrderLists_PathUsedLateIsNewest(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(nil)
	late := dataOf[struct{ RandomPath string }](h, h.want(200, h.path(buyer(), goods))).RandomPath
	first := h.order(buyer(), goods, 1)
	time.Sleep(2 * time.Millisecond)
	r := h.want(202, h.as(buyer(), "POST", "/"+late+"/decrStock?goodsId="+goods, ""))
	newest := dataOf[struct{ OrderSn string }](h, r).OrderSn
	require.Less(t, newest, first)
	for target, who := range map[string]actor{
		"/orders?limit=2": buyer(), "/admin/sales/" + goods + "/orders?limit=2": merchant(),
	} {
		require.Equal(t, []string{newest, first}, h.pages(who, target, "orderSn"), target)
	}
}

// TestListSales_FiltersByPhase checks pages of sales in one phase, in a list with many others.
func TestListSales_FiltersByPhase(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	want := map[string][]string{}
	for i := range 6 {
		id, phase := "", "ongoing"
		if i%2 == 0 {
			id = h.sell(nil)
		} else {
			id, phase = h.sell(sale{
				"startAt": "2096-11-11T12:00:00Z", "endAt": "2096-11-12T12:00:00Z",
			}), "upcoming"
		}
		want[phase] = append([]string{id}, want[phase]...)
		time.Sleep(2 * time.Millisecond) // the ids of one millisecond have no order
	}
	for phase, ids := range want {
		for _, limit := range []string{"1", "2", "100"} {
			target := "/sales?phase=" + phase + "&limit=" + limit
			require.Equal(t, ids, h.pages(buyer(), target, "goodsId"), target)
		}
	}
	require.Empty(t, h.pages(buyer(), "/sales?phase=sold_out", "goodsId"))
	require.Empty(t, h.pages(buyer(), "/sales?phase=ended", "goodsId"))
}

// TestOrderLists_MaskNames checks that lists mask a buyer's name and number, because many people
// read them. Only the buyer can read a single order, so that response shows both.
func TestOrderLists_MaskNames(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(nil)
	h.order(actor{ID: buyer().ID, Role: seckill.Buyer, Phone: "12345678"}, goods, 1)
	h.order(buyer(), goods, 1)
	for target, who := range map[string]actor{
		"/orders": buyer(), "/admin/sales/" + goods + "/orders": merchant(),
	} {
		r := h.want(200, h.as(who, "GET", target, ""))
		require.NotContains(t, r.Body, "Ann Lee")
		require.NotContains(t, r.Body, "12345678")
		require.Contains(t, r.Body, `"name":"A***","phoneNumber":"**********3456"`)
	}
}
