package httpapi_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

func TestConsolePages_AreForSellers(t *testing.T) {
	h := newFixture(t)
	cookie := func(who seckill.Actor) string { c := h.enter(who); return c.Name + "=" + c.Value }
	ops := seckill.Actor{ID: 1, Role: seckill.Operator}
	for _, c := range []struct {
		path, who string
		status    int
	}{
		{"/console", "", 303},
		{"/console", cookie(buyer()), 403},
		{"/console", cookie(merchant()), 200},
		{"/console/sales/43", cookie(merchant()), 200},
		{"/console/sales/x", cookie(merchant()), 404},
		{"/console/sales/-1", cookie(merchant()), 404},
		{"/console/operations", cookie(merchant()), 403},
		{"/console/operations", cookie(ops), 200},
	} {
		res, body := h.openPage(c.path, "Cookie", c.who)
		require.Equal(t, c.status, res.StatusCode, c.path)
		if c.status == 303 {
			require.Equal(t, "/session?to=%2Fconsole", res.Header.Get("Location"))
			continue
		}
		require.Contains(t, body, "</html>")
		require.NotRegexp(t, `style=|<style| on[a-z]+="`, body)
	}
}

// The event stream of a sale sends snapshots, and the reason where there is no snapshot.
func TestSaleEvents_SendSnapshots(t *testing.T) {
	h := newFixture(t)
	f := h.fixture()
	c := h.enter(f.Merchant)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/admin/sales/"+text(f.GoodsID)+"/events", nil)
	require.NoError(t, err)
	req.AddCookie(c)
	res, err := h.client.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/event-stream; charset=utf-8", res.Header.Get("Content-Type"))
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && lines.Text() != "event: picture" {
	}
	require.True(t, lines.Scan())
	var p struct {
		Figures struct{ Total int64 }
		Ledger  struct{ Balanced bool }
	}
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &p), lines.Text())
	require.Positive(t, p.Figures.Total)
	require.True(t, p.Ledger.Balanced)

	require.Equal(t, "FORBIDDEN", h.as(f.OtherMerchant, "GET", "/admin/sales/"+text(f.GoodsID)+"/events", "").Reason)
	require.Equal(t, "NOT_FOUND", h.as(f.Merchant, "GET", "/admin/sales/"+text(f.NoGoods)+"/events", "").Reason)
}
