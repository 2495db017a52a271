package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		{"/console/keys", seller, 200},
		{"/console/keys", h.cookie(buyer()), 403},
		{"/console/orders/4fGh-1", seller, 200},
		{"/console/orders/a%20b", seller, 404},
		{"/console/audit", seller, 200},
		{"/console/webhooks", seller, 200},
		{"/console/webhooks/01a1fc15-9a10-78e6-83a6-b45fac893a06", seller, 200},
		{"/console/webhooks/1", seller, 404},
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
