package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
)

// recordedMetrics is a Metrics that remembers what it heard.
type recordedMetrics struct {
	mu  sync.Mutex
	all []string
}

func (h *recordedMetrics) Route(route string) func(string, time.Duration) {
	return func(reason string, _ time.Duration) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, route+" "+reason)
	}
}

func (h *recordedMetrics) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) == 0 {
		return ""
	}
	return h.all[len(h.all)-1]
}

var secret = []byte("a secret of the tests, of 32 bytes or more")

// fixture is a running API over the fake.
type fixture struct {
	*fake
	t       *testing.T
	tokens  *auth.Tokens
	signer  *paymentprovider.Signer
	metrics *recordedMetrics
	log     *strings.Builder
	url     string
	client  *http.Client
	handler http.Handler
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	tokens, err := auth.New(secret, 1024, time.Now)
	require.NoError(t, err)
	h := &fixture{
		fake: newFake(time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)), t: t,
		tokens: tokens, metrics: &recordedMetrics{}, log: &strings.Builder{},
	}
	h.signer, err = paymentprovider.NewSigner(secret, func() time.Time { return h.now })
	require.NoError(t, err)
	phones, err := auth.NewPhones(auth.DerivedPhoneKey(secret))
	require.NoError(t, err)
	log := slog.New(slog.NewTextHandler(&lockedWriter{w: h.log}, nil))
	site, err := web.New("CNY")
	require.NoError(t, err)
	handler := httpapi.New(httpapi.Deps{
		Sales: h, Reader: h, PathLimiter: h, Purchases: h, Orders: h, Statistics: h, Health: h,
		Payments: h, Callbacks: h.signer, Phones: phones, Sessions: tokens, Site: site, Tokens: tokens, Metrics: h.metrics, Log: log,
	}, httpapi.Options{
		Now: func() time.Time { return h.now }, Guests: []seckill.Actor{{ID: 2, Role: seckill.Buyer, Name: "Ada"}},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	})
	h.handler = handler
	srv := httptest.NewUnstartedServer(handler)
	srv.Config = httpapi.Server(handler, "", log)
	srv.Start()
	t.Cleanup(srv.Close)
	h.url, h.client = srv.URL, apicheck.Client(t, srv.Client())
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
