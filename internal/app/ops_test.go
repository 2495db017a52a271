package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOps_ServesMetricsHealthAndProfiles(t *testing.T) {
	ready := true
	health := func(context.Context) (bool, map[string]string) {
		return ready, map[string]string{"redis": "ok"}
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "metrics")
	})
	h := opsHandler(metrics, health, slog.New(slog.DiscardHandler))
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	require.Equal(t, "metrics", get("/metrics").Body.String())
	require.Equal(t, http.StatusOK, get("/livez").Code)
	require.Equal(t, http.StatusOK, get("/debug/pprof/").Code)
	require.Contains(t, get("/readyz").Body.String(), `"ready":true`)
	ready = false
	w := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), `"reason":"UNAVAILABLE"`)
}
