package prom

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRequestsAreCountedByRouteAndReason(t *testing.T) {
	r := New()
	q := r.Requests()
	q.Observe("/randomPath", "SOLD_OUT", 2*time.Millisecond)
	q.Observe("/randomPath", "SOLD_OUT", 2*time.Millisecond)
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Contains(t, w.Body.String(), `seckill_http_requests_total{reason="SOLD_OUT",route="/randomPath"} 2`)
	require.Contains(t, w.Body.String(), `seckill_http_request_duration_seconds_bucket{route="/randomPath",le="0.0025"} 2`)
	require.Contains(t, w.Body.String(), "go_goroutines")
}
