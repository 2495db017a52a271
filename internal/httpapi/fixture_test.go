package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/embedded"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/order/shipping"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/webhook"
)

type actor = seckill.Actor

// These are the users of the tests.
func buyer() actor {
	return actor{ID: "7", Role: seckill.Buyer, Name: "Ann Lee", Phone: "+4479460123456"}
}
func otherBuyer() actor    { return actor{ID: "8", Role: seckill.Buyer} }
func merchant() actor      { return actor{ID: "70", Role: seckill.Merchant} }
func otherMerchant() actor { return actor{ID: "80", Role: seckill.Merchant} }
func operator() actor      { return actor{ID: "1", Role: seckill.Operator} }

var secret = []byte("a secret of the tests, of 32 bytes or more")

// fixture is a running API over the real services on embedded servers.
type fixture struct {
	httpapi.Deps
	t       testing.TB
	url     string
	client  *http.Client
	handler http.Handler
}

// site is one for all tests, because it never changes.
var site, errSite = web.New("CNY", web.Brand{})

// newFixture starts an API with the default rate limit rules and, if given, a file of more.
func newFixture(t testing.TB, more ...string) *fixture {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	up := must.Get(embedded.Start(t.Context(), t.TempDir(), 0, log))(t)
	t.Cleanup(func() { require.NoError(t, up.Close()) })
	allow := must.Get(webhook.ParseAllow([]string{"127.0.0.1"}))(t)
	settings := app.Settings{
		OrderSecrets: [][]byte{secret}, PublishTimeout: 30 * time.Second, PaymentTimeout: time.Hour,
		BatchSize: 500, AdmissionTimeout: time.Hour, WebhookAllow: allow, Currency: "CNY",
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(more, "")), 0o600))
	book, limits := must.Get(rules.Load(file))(t), redislimit.New(up.Redis, nil)
	// On a busy machine the gate's own deadline would let requests pass without a decision.
	g := gate.New(book, limits, gate.Options{Deadline: time.Minute})
	t.Cleanup(g.Close)
	s := app.NewServices(up.Parts, settings)
	phones := must.Get(auth.NewPhones(auth.DerivedPhoneKey(secret)))(t)
	h := &fixture{t: t, Deps: httpapi.Deps{
		Sales: s.Sales, Catalog: s.Catalog, Rooms: s.Rooms,
		Limiter:      &httpapi.RuleLimiter{Book: book, Gate: g},
		LimiterAdmin: rules.NewAdmin(book, rules.NewSync(up.Redis, book), limits, nil, nil),
		Purchases:    s.Purchases, Orders: s.Orders, Payments: s.Payments,
		Callbacks: must.Get(paymentprovider.NewSigner(secret, time.Now))(t),
		Phones:    phones,
		Shipping: &shipping.Service{
			Orders: s.Orders, Store: up.Store, Sealer: auth.Addresses{Keys: phones},
		},
		Endpoints: &webhook.Service{
			Store: up.Store, Secrets: auth.WebhookSecrets{Keys: phones}, Allow: allow, Log: log,
		},
		APIKeys:     &apikey.Service{Store: up.Store},
		KeyVerifier: apikey.NewVerifier(up.Store, time.Now, log),
		Events:      &event.Feed{Store: up.Store, Currency: "CNY"},
		Statistics:  s.Statistics, DeadLetters: s.DeadLetters, ErrorCounts: s.Counters,
		Notifier: query.NewNotifier(up.Store, up.RedisStore, log),
		Site:     must.Get(site, errSite)(t),
		Tokens:   must.Get(auth.New(secret, 40_000, time.Now))(t),
		Ready:    app.NewHealth(up.Parts).Ready, Log: log,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Guests:         []actor{{ID: "2", Role: seckill.Buyer, Name: "Ada"}},
	}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	workers := append(app.NewWorkers(up.Parts, settings), h.Notifier, h.KeyVerifier)
	go func() { ended <- app.Run(ctx, time.Minute, workers) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	h.handler = httpapi.New(h.Deps)
	srv := httptest.NewUnstartedServer(h.handler)
	srv.Config = httpapi.Server(h.handler, "", log)
	srv.Start()
	t.Cleanup(srv.Close)
	h.url, h.client = srv.URL, apicheck.Client(t, srv.Client())
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return h
}

// sale is what a test sets of a new sale, by the API's names.
type sale map[string]any

// draft creates a sale of ten units that has begun, and returns its goods id. A test may change
// fields.
func (h *fixture) draft(changes sale) string {
	h.t.Helper()
	s := sale{
		"title": "A phone", "price": 199900, "stock": 10, "perBuyerLimit": 1000,
		"startAt": time.Now().Add(-time.Minute), "endAt": time.Now().Add(time.Hour),
	}
	maps.Copy(s, changes)
	body := string(must.Get(json.Marshal(s))(h.t))
	r := h.want(201, h.as(merchant(), "POST", "/admin/sales", body))
	return dataOf[struct{ GoodsID string }](h, r).GoodsID
}

// sell creates a sale and exposes it.
func (h *fixture) sell(changes sale) string {
	h.t.Helper()
	goods := h.draft(changes)
	h.want(200, h.as(merchant(), "POST", "/admin/sales/"+goods+"/expose", ""))
	return goods
}

// path requests a random path.
func (h *fixture) path(who actor, goods string) reply {
	h.t.Helper()
	return h.as(who, "POST", "/randomPath?goodsId="+goods, "")
}

// order places an order and returns its number. The API answers when the order is written.
func (h *fixture) order(who actor, goods string, quantity int) string {
	h.t.Helper()
	path := dataOf[struct{ RandomPath string }](h, h.want(200, h.path(who, goods))).RandomPath
	body := fmt.Sprintf(`{"goodsId":%q,"decrStock":%d}`, goods, quantity)
	var r reply
	queued := func() bool { // a busy machine may take longer than a call may
		r = h.as(who, "POST", "/"+path+"/decrStock", body)
		return r.Reason == "QUEUED"
	}
	require.Eventually(h.t, queued, time.Minute, 100*time.Millisecond)
	return dataOf[struct{ OrderSn string }](h, r).OrderSn
}

type reply = apicheck.Reply

// dataOf decodes a reply's data.
func dataOf[T any](h *fixture, r reply) (data T) {
	h.t.Helper()
	require.NoError(h.t, json.Unmarshal(r.Data, &data), r.Body)
	return data
}

// send sends a request. Header fields come in pairs.
func (h *fixture) send(method, target, body string, header ...string) *http.Response {
	h.t.Helper()
	req := must.Get(http.NewRequestWithContext(
		h.t.Context(), method, h.url+target, strings.NewReader(body)))(h.t)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return must.Get(h.client.Do(req))(h.t)
}

// do sends a request and returns the response with its text.
func (h *fixture) do(method, target, body string, header ...string) (*http.Response, string) {
	h.t.Helper()
	res := h.send(method, target, body, header...)
	defer func() { _ = res.Body.Close() }()
	return res, string(must.Get(io.ReadAll(res.Body))(h.t))
}

// ask sends a request without a token.
func (h *fixture) ask(method, target, body string, header ...string) reply {
	h.t.Helper()
	return must.Get(apicheck.ReadReply(h.send(method, target, body, header...)))(h.t)
}

// as sends a request with a user's token.
func (h *fixture) as(who actor, method, target, body string, header ...string) reply {
	h.t.Helper()
	return h.ask(method, target, body, append(header, "Authorization", h.bearer(who))...)
}

// want fails the test if a reply has another status.
func (h *fixture) want(status int, r reply) reply {
	h.t.Helper()
	require.Equal(h.t, status, r.Status, r.Body)
	return r
}

// bearer returns a user's Authorization header.
func (h *fixture) bearer(who actor) string {
	h.t.Helper()
	return "Bearer " + must.Get(h.Tokens.Sign(who, 24*time.Hour))(h.t)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
