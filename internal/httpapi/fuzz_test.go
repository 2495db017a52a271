package httpapi_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/must"
)

// fakeDeadLetters always contains one dead letter. Requeue and discard do not remove it.
type fakeDeadLetters struct{}

const deadLetterID = "01a1fc15-9a10-78e6-83a6-b45fac893a06"

func (fakeDeadLetters) List(
	_ context.Context, after string, _ int,
) (found []order.DeadLetter, _ error) {
	if after < deadLetterID {
		found = append(found, order.DeadLetter{
			ID: deadLetterID, Reason: order.FailedOversold, FirstSeenAt: time.Unix(1, 0),
			Attempts: 1, Origin: "batch",
		})
	}
	return found, nil
}

func (f fakeDeadLetters) Requeue(ctx context.Context, id string) (order.Order, error) {
	return newOrder("order-1", 43, buyer(), 1, 1, time.Unix(1, 0)), f.Discard(ctx, id)
}

func (fakeDeadLetters) Discard(_ context.Context, id string) error {
	if id != deadLetterID {
		return seckill.NewError(seckill.NotFound, "there is no such dead letter")
	}
	return nil
}

// fuzzFixture is the router with all API routes, the fake services and real limits.
type fuzzFixture struct {
	*fixture
	bearers  []string
	document *apicheck.Document
}

func newFuzzFixture(f *testing.F) *fuzzFixture {
	f.Helper()
	notifier := query.NewNotifier(nil, nil, slog.New(slog.DiscardHandler))
	notifier.Close() // each stream ends after its first event
	z := &fuzzFixture{document: must.Get(apicheck.Load())(f)}
	z.fixture = newFixture(f, func(d *httpapi.Deps) {
		d.Sessions, d.Site = nil, nil // the document contains no pages
		d.LimiterAdmin = newLimiter(f, "rules: []").admin
		d.DeadLetters, d.Notifier = fakeDeadLetters{}, notifier
		d.Log = slog.New(slog.DiscardHandler)
	})
	for _, who := range []actor{buyer(), merchant(), operator()} {
		z.bearers = append(z.bearers, z.bearer(who))
	}
	return z
}

// serve sends a request through the router. It fails on a 5xx status, which includes a panic. It
// also fails on an undocumented response and on an accepted request that the document forbids.
func (z *fuzzFixture) serve(
	t *testing.T, who uint8, method string, u *url.URL, header http.Header, body string,
) {
	z.fake, z.responses = newFake(z.now), nil // the handlers call this fake through z.fixture
	z.sell(43)
	z.order("order-1", 43, buyer())
	z.paths[pathKey(43, buyer().ID, strings.Repeat("0a", 16))] = ""
	r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
	r.Method, r.URL = method, u
	maps.Copy(r.Header, header)
	r.Header.Set("Authorization", z.bearers[int(who)%len(z.bearers)])
	if signed := who&0x40 == 0; signed { // with the payment provider's signature
		timestamp, signature := z.signer.Sign([]byte(body))
		r.Header.Set(paymentprovider.TimestampHeader, timestamp)
		r.Header.Set(paymentprovider.SignatureHeader, signature)
	}
	sent := r.Header.Clone()
	w := httptest.NewRecorder()
	z.handler.ServeHTTP(w, r)
	require.Less(t, w.Code, 500, w.Body.String())
	got := w.Body.Bytes()
	if method == http.MethodHead { // a server drops the body, a recorder keeps it
		got = nil
	}
	require.NoError(t, z.document.Check(apicheck.Exchange{
		Method: method, URL: u, Header: sent, Sent: []byte(body),
		Status: w.Code, Answer: w.Header(), Got: got,
	}))
}

// FuzzRouter sends arbitrary requests to arbitrary paths as each kind of user.
func FuzzRouter(f *testing.F) {
	z := newFuzzFixture(f)
	f.Add(uint8(0), "POST", "/randomPath", "goodsId=43", "application/json", "")
	f.Add(uint8(0), "POST", "/0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a/decrStock", "", "",
		`{"goodsId":"43","decrStock":1}`)
	f.Add(uint8(1), "GET", "/admin/sales/43/orders", "limit=5&status=paid&cursor=b28", "", "")
	f.Add(uint8(2), "HEAD", "//sales/", "limit=5;x", "text/plain", "\xff")
	f.Add(uint8(0), "POST", "/payments/callback", "", "application/json",
		`{"paymentId":"p-1","orderSn":"order-1","amount":1}`)
	f.Add(uint8(0), "POST", "/payments/callback", "", "application/x-www-form-urlencoded", "")
	f.Fuzz(func(t *testing.T, who uint8, method, path, query, contentType, body string) {
		header := http.Header{}
		if contentType != "" {
			header.Set("Content-Type", contentType)
		}
		z.serve(t, who, method, &url.URL{Path: path, RawQuery: query}, header, body)
	})
}

// FuzzEveryRoute sends arbitrary input to each route: path, query, body and all header fields that
// the API reads.
func FuzzEveryRoute(f *testing.F) {
	z := newFuzzFixture(f)
	routes := z.handler.(*gin.Engine).Routes()
	sale := `{"title":"x","price":1,"stock":1,"startAt":"2026-11-11T12:00:00Z",` +
		`"endAt":"2096-11-11T13:00:00Z","rate":{"permitsPerSecond":0.5}}`
	export := "format=csv&status=paid&limit=3&cursor=b28"
	change := `{"stockDelta":-1,"endAt":"2096-11-11T13:00:00Z"}`
	limit := `{"algorithm":"nginx","permitsPerSecond":0.3,"burst":9,"nodelay":true}`
	form := "title=a&price=1&stock=1&rate.maxWaitMillis=5"
	for i := range routes {
		for who := range uint8(3) {
			f.Add(uint8(i), who, "43", "43", "", "", "")
		}
		f.Add(uint8(i), uint8(0), "order-1", "", "", `{"goodsId":43}`, "1")
		f.Add(uint8(i), uint8(0), strings.Repeat("0a", 16), "", "goodsId=43&decrStock=2", "", "")
		f.Add(uint8(i), uint8(1), "43", "", "", sale, "key")
		f.Add(uint8(i), uint8(1), "43", "", export, change, `"k"`)
		f.Add(uint8(i), uint8(2), "randomPath", "2001:db8::/64", "", limit, "")
		f.Add(uint8(i), uint8(2), deadLetterID, "", "limit=1&cursor=ZDAx", form, "")
	}
	f.Fuzz(func(t *testing.T, n, who uint8, first, second, query, body, field string) {
		route := routes[int(n)%len(routes)]
		header := http.Header{}
		if !strings.HasPrefix(body, "{") {
			header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if field != "" {
			for _, name := range []string{
				"Idempotency-Key", "If-None-Match", "Last-Event-Id", "X-Request-Id", "Accept",
			} {
				header.Set(name, field)
			}
		}
		u := &url.URL{Path: fill(route.Path, first, second), RawQuery: query}
		z.serve(t, who, route.Method, u, header, body)
	})
}

// fill replaces a route's parameters with values.
func fill(path string, values ...string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, ":") || strings.HasPrefix(s, "*") {
			segments[i], values = values[0], values[1:]
		}
	}
	return strings.Join(segments, "/")
}
