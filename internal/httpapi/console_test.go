package httpapi_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

func TestConsolePages_AreForSellers(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	seller := h.cookie(merchant())
	for _, c := range []struct {
		path, cookie string
		status       int
	}{
		{"/console", "", 303},
		{"/console", h.cookie(buyer()), 403},
		{"/console", seller, 200},
		{"/console/sales/43", seller, 200},
		{"/console/sales/x", seller, 404},
		{"/console/sales/-1", seller, 404},
		{"/console/operations", seller, 403},
		{"/console/operations", h.cookie(operator()), 200},
	} {
		res, body := h.openPage(c.path, "Cookie", c.cookie)
		require.Equal(t, c.status, res.StatusCode, c.path)
		if c.status == 303 {
			require.Equal(t, "/session?to=%2Fconsole", res.Header.Get("Location"))
			continue
		}
		require.Contains(t, body, "</html>")
		require.NotRegexp(t, `style=|<style| on[a-z]+="`, body)
	}
}

func TestSaleEvents_SendSnapshots(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	events := "/admin/sales/" + h.sell(nil) + "/events"
	req := must.Get(http.NewRequestWithContext(t.Context(), "GET", h.url+events, nil))(t)
	req.Header.Set("Cookie", h.cookie(merchant()))
	res := must.Get(h.client.Do(req))(t)
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
	data := strings.TrimPrefix(lines.Text(), "data: ")
	require.NoError(t, json.Unmarshal([]byte(data), &p), data)
	require.Positive(t, p.Figures.Total)
	require.True(t, p.Ledger.Balanced)

	require.Equal(t, "FORBIDDEN", h.as(otherMerchant(), "GET", events, "").Reason)
	require.Equal(t, "NOT_FOUND", h.as(merchant(), "GET", "/admin/sales/44/events", "").Reason)
}
