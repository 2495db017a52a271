package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
)

// heard is a Metrics that remembers what it heard.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) Observe(route, reason string, _ time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, route+" "+reason)
}

func (h *heard) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) == 0 {
		return ""
	}
	return h.all[len(h.all)-1]
}

var secret = []byte("a secret of the tests, of 32 bytes or more")

// house is a running API over the fake.
type house struct {
	*fake
	t       *testing.T
	tokens  *auth.Tokens
	metrics *heard
	log     *strings.Builder
	url     string
	client  *http.Client
}

func open(t *testing.T) *house {
	t.Helper()
	tokens, err := auth.New(secret, 1024, time.Now)
	require.NoError(t, err)
	h := &house{
		fake: newFake(time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)), t: t,
		tokens: tokens, metrics: &heard{}, log: &strings.Builder{},
	}
	log := slog.New(slog.NewTextHandler(&lockedWriter{w: h.log}, nil))
	handler := httpapi.New(httpapi.Deps{
		Sales: h, Shop: h, Limiter: h, Desk: h, Orders: h, Cashier: h, Changes: h, Figures: h, Health: h, Tokens: tokens, Metrics: h.metrics, Log: log,
	}, httpapi.Options{Now: func() time.Time { return h.now }})
	srv := httptest.NewUnstartedServer(handler)
	srv.Config = httpapi.Server(handler, "", log)
	srv.Start()
	t.Cleanup(srv.Close)
	h.url, h.client = srv.URL, srv.Client()
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return h
}

type lockedWriter struct {
	mu sync.Mutex
	w  *strings.Builder
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
