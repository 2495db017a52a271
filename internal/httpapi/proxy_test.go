package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/logging"
)

// client returns the client address in the access log for a request that claims another address.
func client(t *testing.T, trusted []netip.Prefix, from string) string {
	t.Helper()
	var log strings.Builder
	handler := httpapi.New(httpapi.Deps{Log: logging.Logger(&log, slog.LevelDebug, "text")},
		httpapi.Options{TrustedProxies: trusted})
	r := httptest.NewRequest(http.MethodGet, "/livez", nil)
	r.RemoteAddr = from + ":1234"
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	r.Header.Set("X-Real-IP", "203.0.113.9")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	_, after, found := strings.Cut(log.String(), "client=")
	require.True(t, found, log.String())
	return strings.Fields(after)[0]
}

func TestClientIP_BelievesTrustedProxiesOnly(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	require.Equal(t, "192.0.2.1", client(t, nil, "192.0.2.1"))
	require.Equal(t, "192.0.2.1", client(t, proxies, "192.0.2.1"))
	require.Equal(t, "203.0.113.9", client(t, proxies, "10.1.2.3"))
}
