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

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/must"
)

// recorder implements Metrics and io.Writer for the log. It stores all metrics and log records.
type recorder struct {
	mu        sync.Mutex
	responses []string // route and reason
	log       strings.Builder
}

func (r *recorder) Route(route string) func(string, time.Duration) {
	return func(reason string, _ time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.responses = append(r.responses, route+" "+reason)
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}

// lastResponse returns the route and the reason of the last recorded response.
func (r *recorder) lastResponse() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.responses[len(r.responses)-1]
}

func (r *recorder) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

var secret = []byte("a secret of the tests, of 32 bytes or more")

// fixture is a running API over the fake services.
type fixture struct {
	*fake
	*recorder
	t       testing.TB
	tokens  *auth.Tokens
	signer  *paymentprovider.Signer
	url     string
	client  *http.Client
	handler http.Handler
}

// newFixture starts an API. A test may replace services through changes.
func newFixture(t testing.TB, changes ...func(d *httpapi.Deps)) *fixture {
	t.Helper()
	h := &fixture{
		fake:     newFake(time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)),
		recorder: &recorder{}, t: t, tokens: must.Get(auth.New(secret, 40_000, time.Now))(t),
	}
	now := func() time.Time { return h.now }
	h.signer = must.Get(paymentprovider.NewSigner(secret, now))(t)
	deps := httpapi.Deps{
		Sales: h, Reader: h, LimitPath: h.LimitPath, Purchases: h, Orders: h, Statistics: h,
		Health:   h,
		Payments: h, Callbacks: h.signer, Sessions: h.tokens, Tokens: h.tokens,
		Phones: must.Get(auth.NewPhones(auth.DerivedPhoneKey(secret)))(t),
		Site:   must.Get(web.New("CNY"))(t), Metrics: h, Log: slog.New(slog.NewTextHandler(h, nil)),
	}
	for _, change := range changes {
		change(&deps)
	}
	h.handler = httpapi.New(deps, httpapi.Options{
		Now: now, Guests: []seckill.Actor{{ID: 2, Role: seckill.Buyer, Name: "Ada"}},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	})
	srv := httptest.NewUnstartedServer(h.handler)
	srv.Config = httpapi.Server(h.handler, "", deps.Log)
	srv.Start()
	t.Cleanup(srv.Close)
	h.url, h.client = srv.URL, apicheck.Client(t, srv.Client())
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return h
}
