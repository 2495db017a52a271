package httpapi_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/paymentprovider"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/apicheck"
)

// fakeDeadLetters is a Letters with one dead letter in it, whatever is done with it.
type fakeDeadLetters struct{}

const deadLetterID = "01a1fc15-9a10-78e6-83a6-b45fac893a06"

func (fakeDeadLetters) List(_ context.Context, after string, _ int) ([]order.DeadLetter, error) {
	if after >= deadLetterID {
		return nil, nil
	}
	return []order.DeadLetter{{ID: deadLetterID, Reason: order.FailedOversold, FirstSeenAt: time.Unix(1, 0), Attempts: 1, Origin: "batch"}}, nil
}

func (fakeDeadLetters) Requeue(_ context.Context, id string) (order.Order, error) {
	o := order.Order{OrderLine: reservation.OrderLine{OrderSn: "order-1", BuyerID: 7, Quantity: 1}, GoodsID: 43, Status: order.Created}
	return o, fakeDeadLetters{}.Discard(context.Background(), id)
}

func (fakeDeadLetters) Discard(_ context.Context, id string) error {
	if id != deadLetterID {
		return seckill.NewError(seckill.NotFound, "there is no such dead letter")
	}
	return nil
}

// fuzzFixture is the real router with all its routes, over the fakes, and real limits over a Redis in the process.
type fuzzFixture struct {
	*fixture
	router   *gin.Engine
	bearers  []string
	document *apicheck.Document
}

func newFuzzFixture(f *testing.F) *fuzzFixture {
	f.Helper()
	now := time.Now()
	log := slog.New(slog.DiscardHandler)
	tokens, err := auth.New(secret, 100, time.Now)
	require.NoError(f, err)
	z := &fuzzFixture{fixture: &fixture{fake: newFake(now), metrics: &recordedMetrics{}}}
	for _, a := range []seckill.Actor{buyer(), merchant(), operator()} {
		token, err := tokens.Sign(a, 24*time.Hour)
		require.NoError(f, err)
		z.bearers = append(z.bearers, "Bearer "+token)
	}
	server, err := miniredis.Run()
	require.NoError(f, err)
	f.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), DisableIdentity: true})
	f.Cleanup(func() { _ = client.Close() })
	book, err := rules.New(rules.Defaults()...)
	require.NoError(f, err)
	limiters := rules.NewAdmin(book, rules.NewSync(client, book), redislimit.New(client, nil), nil)
	z.signer, err = paymentprovider.NewSigner(secret, time.Now)
	require.NoError(f, err)
	phones, err := auth.NewPhones(auth.DerivedPhoneKey(secret))
	require.NoError(f, err)
	notifier := query.NewNotifier(nil, nil, log)
	notifier.Close() // streams end when they have answered what there is
	z.router = httpapi.New(httpapi.Deps{
		Sales: z, Reader: z, PathLimiter: z, Purchases: z, Orders: z, Statistics: z, Health: z, Tokens: tokens,
		Payments: z, Callbacks: z.signer, Phones: phones,
		LimiterAdmin: limiters, DeadLetters: fakeDeadLetters{}, Notifier: notifier, Metrics: z.metrics, Log: log,
	}, httpapi.Options{}).(*gin.Engine)
	z.document, err = apicheck.Load()
	require.NoError(f, err)
	return z
}

// serve sends a request through the router: no panic (the router would answer 500), no 5xx, no answer that is not in the
// document, and nothing taken that the document does not allow.
func (z *fuzzFixture) serve(t *testing.T, who uint8, method string, u *url.URL, header http.Header, body string) {
	z.fake, z.metrics.all = newFake(time.Now()), nil // the router reaches the fake through z: what one request left is gone
	z.sell(43)
	z.order("order-1", 43, buyer())
	z.paths[pathKey(43, buyer().ID, strings.Repeat("0a", 16))] = ""
	r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
	r.Method, r.URL = method, u
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Authorization", z.bearers[int(who)%len(z.bearers)])
	if signed := who&0x40 == 0; signed { // what the payment provider might send
		timestamp, signature := z.signer.Sign([]byte(body))
		r.Header.Set(paymentprovider.TimestampHeader, timestamp)
		r.Header.Set(paymentprovider.SignatureHeader, signature)
	}
	sent := r.Header.Clone()
	w := httptest.NewRecorder()
	z.router.ServeHTTP(w, r)
	require.Less(t, w.Code, 500, w.Body.String())
	answer := w.Result()
	got, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	if method == http.MethodHead { // a server leaves it away; a recorder does not
		got = nil
	}
	require.NoError(t, z.document.Check(apicheck.Exchange{
		Method: method, URL: u, Header: sent, Sent: []byte(body), Status: w.Code, Answer: answer.Header, Got: got,
	}))
}

// FuzzRouter sends anything to any path as anybody.
func FuzzRouter(f *testing.F) {
	z := newFuzzFixture(f)
	f.Add(uint8(0), "POST", "/randomPath", "goodsId=43", "application/json", "")
	f.Add(uint8(0), "POST", "/0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a/decrStock", "", "", `{"goodsId":"43","decrStock":1}`)
	f.Add(uint8(1), "GET", "/admin/sales/43/orders", "limit=5&status=paid&cursor=b28", "", "")
	f.Add(uint8(2), "HEAD", "//sales/", "limit=5;x", "text/plain", "\xff")
	f.Add(uint8(0), "POST", "/payments/callback", "", "application/json", `{"paymentId":"p-1","orderSn":"order-1","amount":1}`)
	f.Add(uint8(0), "POST", "/payments/callback", "", "application/x-www-form-urlencoded", "")
	f.Fuzz(func(t *testing.T, who uint8, method, path, query, contentType, body string) {
		header := http.Header{}
		if contentType != "" {
			header.Set("Content-Type", contentType)
		}
		z.serve(t, who, method, &url.URL{Path: path, RawQuery: query}, header, body)
	})
}

// FuzzEveryRoute sends anything to each route in turn: what is in the path, the query, the body and the header fields that
// some call reads.
func FuzzEveryRoute(f *testing.F) {
	z := newFuzzFixture(f)
	routes := z.router.Routes()
	sale := `{"title":"x","price":1,"stock":1,"startAt":"2026-11-11T12:00:00Z","endAt":"2096-11-11T13:00:00Z","rate":{"permitsPerSecond":0.5}}`
	for i := range routes {
		for who := range uint8(3) {
			f.Add(uint8(i), who, "43", "43", "", "", "")
		}
		f.Add(uint8(i), uint8(0), "order-1", "", "", `{"goodsId":43}`, "1")
		f.Add(uint8(i), uint8(0), strings.Repeat("0a", 16), "", "goodsId=43&decrStock=2", "", "")
		f.Add(uint8(i), uint8(1), "43", "", "", sale, "key")
		f.Add(uint8(i), uint8(1), "43", "", "format=csv&status=paid&limit=3&cursor=b28", `{"stockDelta":-1,"endAt":"2096-11-11T13:00:00Z"}`, `"k"`)
		f.Add(uint8(i), uint8(2), "randomPath", "2001:db8::/64", "", `{"algorithm":"nginx","permitsPerSecond":0.3,"burst":9,"nodelay":true}`, "")
		f.Add(uint8(i), uint8(2), deadLetterID, "", "limit=1&cursor=ZDAx", "title=a&price=1&stock=1&rate.maxWaitMillis=5", "")
	}
	f.Fuzz(func(t *testing.T, n, who uint8, first, second, query, body, field string) {
		route := routes[int(n)%len(routes)]
		header := http.Header{}
		if !strings.HasPrefix(body, "{") {
			header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if field != "" {
			for _, name := range []string{"Idempotency-Key", "If-None-Match", "Last-Event-Id", "X-Request-Id", "Accept"} {
				header[name] = []string{field}
			}
		}
		z.serve(t, who, route.Method, &url.URL{Path: fill(route.Path, first, second), RawQuery: query}, header, body)
	})
}

// fill puts values in the place of a route's parameters.
func fill(path string, values ...string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, ":") || strings.HasPrefix(s, "*") {
			segments[i], values = values[0], values[1:]
		}
	}
	return strings.Join(segments, "/")
}
