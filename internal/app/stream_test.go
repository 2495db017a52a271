package app_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// stream is a buyer's event stream. The test reads it line by line.
type stream struct {
	*http.Response
	lines *bufio.Scanner
}

func (h *fixture) stream(who seckill.Actor, sn string, header ...string) stream {
	res := must.Get(h.client.Do(h.request(who, "GET", "/orders/"+sn+"/events", "", header...)))(h.t)
	h.t.Cleanup(func() { _ = res.Body.Close() })
	return stream{res, bufio.NewScanner(res.Body)}
}

// next reads up to the next event and returns its id and data. It returns "" at the end of the
// stream.
func (s stream) next() (id, data string) {
	for s.lines.Scan() {
		switch name, value, _ := strings.Cut(s.lines.Text(), ": "); name {
		case "id":
			id = value
		case "data":
			return id, value
		}
	}
	return "", ""
}

func TestOrderEvents_FollowAnOrderToItsEnd(t *testing.T) {
	h := open(t)
	goods := h.exposed("3", "1")
	sn := h.buys(buyer(1), goods, "1")
	s := h.stream(buyer(1), sn)
	require.Equal(t, "text/event-stream; charset=utf-8", s.Header.Get("Content-Type"))
	id, data := s.next()
	require.Equal(t, "2", id)
	require.Contains(t, data, `"status":"created"`)
	later := h.stream(buyer(1), sn, "Last-Event-ID", "2") // the client has read event 2
	h.does(buyer(1), "POST", "/orders/"+sn+"/pay", "")
	for _, s := range []stream{s, later} {
		id, data = s.next()
		require.Equal(t, "3", id)
		require.Contains(t, data, `"status":"paid"`)
		id, _ = s.next()
		require.Empty(t, id, "a final status ends the stream")
	}
	require.Equal(t, http.StatusNoContent, h.stream(buyer(1), sn, "Last-Event-ID", "3").StatusCode,
		"a 204 must stop the client's reconnects")
	require.Equal(t, http.StatusOK, h.stream(buyer(1), sn, "Last-Event-ID", "nonsense").StatusCode)

	require.Equal(t, http.StatusForbidden, h.stream(buyer(2), sn).StatusCode)
	require.Equal(t, http.StatusForbidden, h.stream(merchant(), sn).StatusCode)
	require.Equal(t, http.StatusNotFound, h.stream(buyer(1), "invented").StatusCode)
	require.Equal(t, http.StatusUnauthorized, h.stream(seckill.Actor{}, sn).StatusCode)
}

// TestOrderEvents_FollowARequeuedOrder checks that a client which has read that its order failed
// follows it again after an operator has requeued it.
func TestOrderEvents_FollowARequeuedOrder(t *testing.T) {
	h := open(t)
	sn, deadLetter := h.dies(h.exposed("5", "2"), 1, 2)
	id, data := h.stream(buyer(1), sn).next()
	require.Equal(t, "3", id)
	require.Contains(t, data, `"status":"failed"`)
	h.does(operator(), "POST", "/admin/dead-letters/"+deadLetter+"/requeue", "")
	s := h.stream(buyer(1), sn, "Last-Event-ID", id)
	id, data = s.next()
	require.Equal(t, "2", id)
	require.Contains(t, data, `"status":"created"`)
	h.does(buyer(1), "POST", "/orders/"+sn+"/pay", "")
	id, data = s.next()
	require.Equal(t, "3", id)
	require.Contains(t, data, `"status":"paid"`)
}

func TestOrderEvents_StreamsAreFewAndEndAtShutdown(t *testing.T) {
	h := open(t)
	goods := h.exposed("3", "1")
	sn := h.buys(buyer(1), goods, "1")
	streams := make([]stream, 5)
	for i := range streams {
		streams[i] = h.stream(buyer(1), sn)
		require.Equal(t, http.StatusOK, streams[i].StatusCode)
	}
	sixth := h.stream(buyer(1), sn)
	require.Equal(t, http.StatusTooManyRequests, sixth.StatusCode)
	require.NotEmpty(t, sixth.Header.Get("Retry-After"))
	require.Equal(t, `"streams";r=0;t=1`, sixth.Header.Get("RateLimit"))
	require.Contains(t, sixth.Header.Get("RateLimit-Policy"), `"streams";q=5`)
	_ = streams[0].Body.Close()
	h.eventually(func() bool {
		return h.stream(buyer(1), sn).StatusCode == http.StatusOK
	}, "a closed stream must free its place")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, h.server.Config.Shutdown(ctx), "open streams must not delay the shutdown")
	_, _ = streams[1].next()
	id, _ := streams[1].next()
	require.Empty(t, id)
}

// TestOrderEvents_ReachTwoThousandStreams cancels the orders of 2,000 buyers on one node in one
// transaction. Every buyer's stream gets the new status.
func TestOrderEvents_ReachTwoThousandStreams(t *testing.T) {
	const many = 2000
	h := open(t)
	goods := h.exposed(strconv.Itoa(many), "1")
	id := h.id(goods)
	sns := h.written(id, many, 1)
	streams := make([]stream, many)
	var opening errgroup.Group
	opening.SetLimit(8)
	for i := range streams {
		opening.Go(func() error {
			streams[i] = h.stream(buyer(int64(i+1)), sns[i])
			if first, _ := streams[i].next(); first != "2" {
				return fmt.Errorf("stream %d began with %q", i, first)
			}
			return nil
		})
	}
	require.NoError(t, opening.Wait())
	moves := must.Get(h.Store.ExpireDue(t.Context(), id, time.Now().Add(24*time.Hour), many))(t)
	require.Len(t, moves, many)
	for _, s := range streams {
		last, data := s.next()
		require.Equal(t, "3", last)
		require.Contains(t, data, `"status":"expired"`)
	}
}

// written writes one order for each buyer, as the consumer does.
func (h *fixture) written(goodsID int64, n int, first int64) []string {
	sns := make([]string, 0, n)
	for len(sns) < n {
		b := orderwriter.Batch{
			GoodsID: goodsID,
			Times:   order.Times{Now: time.Now(), PayBy: time.Now().Add(time.Hour)},
		}
		for range min(500, n-len(sns)) {
			buyer := first + int64(len(sns))
			sn := h.issued(goodsID, buyer)
			b.Lines = append(b.Lines, reservation.OrderLine{
				OrderSn: sn, BuyerID: fmt.Sprint(buyer), Quantity: 1, Epoch: 1,
				Name: "=cmd()", Phone: "+49301234",
			})
			sns = append(sns, sn)
		}
		must.Get(h.Store.WriteBatch(h.t.Context(), b))(h.t)
	}
	return sns
}

// TestOrdersCSV_HasEveryOrderAndNoFormula checks that the export contains every order exactly one
// time. It also checks that no cell is a spreadsheet formula.
func TestOrdersCSV_HasEveryOrderAndNoFormula(t *testing.T) {
	h := open(t)
	goods := h.exposed("1700", "1")
	id := h.id(goods)
	sns := h.written(id, 1700, 1)
	for _, ask := range [][]string{{"?format=csv"}, {"?status=created", "Accept", "text/csv"}} {
		r := h.does(merchant(), "GET", "/admin/sales/"+goods+"/orders"+ask[0], "", ask[1:]...)
		require.Contains(t, r.Header.Get("Content-Type"), "text/csv")
		require.Contains(t, r.Header.Get("Content-Disposition"), goods)
		text, marked := strings.CutPrefix(r.Body, "\ufeff")
		require.True(t, marked, "Excel takes a file without a byte order mark for Windows-1252")
		rows := must.Get(csv.NewReader(strings.NewReader(text)).ReadAll())(t)
		require.Equal(t, "orderSn", rows[0][0])
		require.Len(t, rows, 1701)
		for i, row := range rows[1:] {
			require.Equal(t, sns[len(sns)-1-i], row[0], "the newest order comes first")
			require.Equal(t, `="`+goods+`"`, row[3], "a spreadsheet would round the number")
			require.Equal(t, []string{"'=cmd()", "'+49301234"}, row[7:9])
			require.Equal(t, []string{"1999", "CNY", "19.99"},
				[]string{row[6], row[14], row[15]})
		}
	}
	r := h.as(merchant(), "GET", "/admin/sales/"+goods+"/orders?format=csv&status=paid", "")
	require.Equal(t, 1, strings.Count(r.Body, "\n"), "only the header row")
	require.Equal(t, 403,
		h.as(seckill.Actor{ID: "71", Role: seckill.Merchant}, "GET",
			"/admin/sales/"+goods+"/orders?format=csv", "").Status)
	h.refuses("BAD_REQUEST", merchant(), "GET", "/admin/sales/"+goods+"/orders?format=xml", "")
}

func TestFigures_CountSalesAndRefusals(t *testing.T) {
	h := openWith(t, time.Hour) // not parallel: three orders must come within ten seconds
	goods := h.draft("9", "2")
	figures := func() string {
		return h.does(merchant(), "GET", "/admin/sales/"+goods+"/figures", "").Body
	}
	require.Contains(t, figures(),
		`{"status":"draft","total":9,"available":9,"pending":0,"sold":0,"paid":0,"paidAmount":0,`)
	h.does(merchant(), "POST", "/admin/sales/"+goods+"/expose", "")
	paid, cancelled := h.buys(buyer(1), goods, "2"), h.buys(buyer(2), goods, "1")
	h.buys(buyer(3), goods, "1")
	perSecond := regexp.MustCompile(`"ordersPerSecond":0\.[123],`) // three orders in ten seconds
	h.eventually(func() bool { return perSecond.MatchString(figures()) },
		"the figures never showed the rate of orders")
	h.does(buyer(1), "POST", "/orders/"+paid+"/pay", "")
	h.does(buyer(2), "POST", "/orders/"+cancelled+"/cancel", "")
	h.exact(goods, 9, 6, 3)
	got := figures()
	require.Contains(t, got,
		`"status":"exposed","phase":"ongoing","total":9,"available":6,`+
			`"pending":0,"sold":3,"paid":2,"paidAmount":3998,`)
	require.Contains(t, got, `"cancelled":{"orders":1,"units":1,"amount":1999}`)
	require.Contains(t, got, `"created":{"orders":1,"units":1,"amount":1999}`)

	for range 3 {
		h.refuses("BAD_PATH", buyer(4), "POST",
			"/"+strings.Repeat("0", 32)+"/decrStock?goodsId="+goods, "")
	}
	require.Equal(t, "LIMIT_REACHED", h.tries(buyer(1), goods, "1").Reason)
	require.Equal(t, "LIMIT_REACHED", h.tries(buyer(5), goods, "100").Reason)
	require.Equal(t, "NOT_FOUND", h.tries(buyer(5), "12345", "1").Reason)
	h.eventually(func() bool {
		got = figures()
		return strings.Contains(got, `"BAD_PATH":3`) && strings.Contains(got, `"LIMIT_REACHED":2`)
	}, "the figures never showed all refusals")
	require.Contains(t, got, `"RATE_LIMITED":0`)
}

// TestSaleList_RepeatedReadIsNotModified checks that a request with the list's ETag gets a 304
// without a body until the list changes.
func TestSaleList_RepeatedReadIsNotModified(t *testing.T) {
	h := open(t)
	goods := h.exposed("9", "2")
	var r reply
	h.eventually(func() bool {
		r = h.as(seckill.Actor{}, "GET", "/sales", "")
		return strings.Contains(r.Body, goods)
	}, "the list never showed the sale")
	require.Equal(t, "public, max-age=1", r.Header.Get("Cache-Control"))
	again := h.as(seckill.Actor{}, "GET", "/sales", "", "If-None-Match",
		`"x", `+r.Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.Status)
	require.Empty(t, again.Body)
	h.buys(buyer(1), goods, "1")
	h.eventually(func() bool {
		return h.as(seckill.Actor{}, "GET", "/sales", "", "If-None-Match",
			r.Header.Get("ETag")).Status == 200
	}, "the list's ETag must change after a sold unit")
}
