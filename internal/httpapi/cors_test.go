package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCORS_PermitsConfiguredOriginsOnly sends what a browser sends for a page of another site. No
// answer permits it to send the session's cookie.
func TestCORS_PermitsConfiguredOriginsOnly(t *testing.T) {
	t.Parallel()
	const shop = "https://shop.example.org"
	ask := func(origins []string, method string, header ...string) http.Header {
		r := httptest.NewRequest(method, "/sales", nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		allowOrigins(origins, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
		})).ServeHTTP(w, r)
		require.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"))
		return w.Header()
	}
	preflight := []string{
		"Origin", shop, "Access-Control-Request-Method", "PATCH",
		"Access-Control-Request-Headers", "authorization,content-type,idempotency-key",
	}
	allowed := ask([]string{shop}, "OPTIONS", preflight...)
	require.Equal(t, shop, allowed.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "PATCH", allowed.Get("Access-Control-Allow-Methods"))
	read := ask([]string{shop}, "GET", "Origin", shop)
	require.Equal(t, shop, read.Get("Access-Control-Allow-Origin"))
	require.Contains(t, read.Get("Access-Control-Expose-Headers"), "Retry-After")
	require.Contains(t, read.Values("Vary"), "Origin")
	for name, h := range map[string]http.Header{
		"none is configured": ask(nil, "OPTIONS", preflight...),
		"another site":       ask([]string{"https://other.example.org"}, "OPTIONS", preflight...),
		"another scheme":     ask([]string{shop}, "GET", "Origin", "http://shop.example.org"),
		"a longer host":      ask([]string{shop}, "GET", "Origin", shop+".evil.example"),
		"no origin":          ask([]string{shop}, "GET", "Origin", "null"),
	} {
		require.Empty(t, h.Get("Access-Control-Allow-Origin"), name)
	}
}
