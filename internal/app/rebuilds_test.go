package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestRebuilds_ListSalesWithAShutGate shuts the gate of one of two sales, as a rebuild does. No
// worker runs that would open it again.
func TestRebuilds_ListSalesWithAShutGate(t *testing.T) {
	t.Parallel()
	h := openIdle(t, 15*time.Minute)
	shut, open := h.exposed("5", "2"), h.exposed("7", "2")
	require.Contains(t, h.does(operator(), "GET", "/admin/rebuilds", "").Body, `"items":[]`)
	must.Get(h.RedisStore.Shut(t.Context(), h.id(shut), 1))(t)
	var raw string
	require.Eventually(t, func() bool { // the list of sales is cached for a second
		raw = h.does(operator(), "GET", "/admin/rebuilds", "").Body
		return strings.Contains(raw, shut)
	}, time.Minute, 50*time.Millisecond)
	require.Contains(t, raw, `"phase":"ongoing","gate":"SHUT","epoch":1,"available":5`)
	require.NotContains(t, raw, open)
}
