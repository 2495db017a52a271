package httpapi_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/paymentprovider/stripepay"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/must"
)

// fuzzFixture is the router of the real services. Its state lasts, so that an input may find what
// an earlier one left. Each stream ends after its first event.
type fuzzFixture struct {
	*fixture
	goods, sn, path string
	spare           string // a sale that merchants' seeds may close
	bearers         []string
	document        *apicheck.Document
}

func newFuzzFixture(f *testing.F) *fuzzFixture {
	f.Helper()
	z := &fuzzFixture{fixture: newFixture(f), document: must.Get(apicheck.Load())(f)}
	z.goods, z.spare = z.sell(nil), z.sell(nil)
	z.sn = z.order(buyer(), z.goods, 1)
	r := z.fixture.path(buyer(), z.goods)
	z.path = dataOf[struct{ RandomPath string }](z.fixture, r).RandomPath
	z.Notifier.Close()
	for _, who := range []actor{buyer(), merchant(), operator()} {
		z.bearers = append(z.bearers, z.bearer(who))
	}
	// An address without a server: no input has Stripe's signature, so none leads to a call.
	z.Webhooks = must.Get(stripepay.New(stripepay.Options{
		URL: "http://127.0.0.1:1", WebhookSecret: "whsec_x", PublicURL: "https://shop.example",
		Currency: "CNY",
	}))(f)
	z.handler = httpapi.New(z.Deps)
	return z
}

// serve sends a request through the router. It fails on a 5xx status, which includes a panic. It
// also fails on an undocumented response and on an accepted request that the document forbids.
func (z *fuzzFixture) serve(
	t *testing.T, who uint8, method string, u *url.URL, header http.Header, body string,
) {
	r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
	r.Method, r.URL = method, u
	maps.Copy(r.Header, header)
	r.Header.Set("Authorization", z.bearers[int(who)%len(z.bearers)])
	if signed := who&0x40 == 0; signed { // with the payment provider's signature
		timestamp, signature := z.Callbacks.Sign([]byte(body))
		r.Header.Set(paymentprovider.TimestampHeader, timestamp)
		r.Header.Set(paymentprovider.SignatureHeader, signature)
	}
	sent := r.Header.Clone()
	w := httptest.NewRecorder()
	z.handler.ServeHTTP(w, r)
	if w.Code == http.StatusServiceUnavailable { // a busy machine may take longer than a call may
		require.Contains(t, w.Body.String(), "UNAVAILABLE")
	} else {
		require.Less(t, w.Code, 500, w.Body.String())
	}
	got := w.Body.Bytes()
	if method == http.MethodHead { // a server drops the body, a recorder keeps it
		got = nil
	}
	require.NoError(t, z.document.Check(apicheck.RoundTrip{
		Method: method, URL: u, RequestHeader: sent, RequestBody: []byte(body),
		Status: w.Code, ResponseHeader: w.Header(), ResponseBody: got,
	}))
}

// FuzzRouter sends arbitrary requests to arbitrary paths as each kind of user.
func FuzzRouter(f *testing.F) {
	z := newFuzzFixture(f)
	f.Add(uint8(0), "POST", "/randomPath", "goodsId="+z.goods, "application/json", "")
	f.Add(uint8(0), "POST", "/"+z.path+"/decrStock", "", "",
		`{"goodsId":"`+z.goods+`","decrStock":1}`)
	f.Add(uint8(1), "GET", "/admin/sales/"+z.goods+"/orders",
		"limit=5&status=paid&cursor=b28", "", "")
	f.Add(uint8(2), "HEAD", "//sales/", "limit=5;x", "text/plain", "\xff")
	f.Add(uint8(0), "POST", "/payments/callback", "", "application/json",
		`{"paymentId":"p-1","orderSn":"`+z.sn+`","amount":1}`)
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
	routes := slices.DeleteFunc(z.handler.(*gin.Engine).Routes(),
		func(r gin.RouteInfo) bool { return apicheck.Page(r.Path) })
	sale := `{"title":"x","price":1,"stock":1,"startAt":"2026-11-11T12:00:00Z",` +
		`"endAt":"2096-11-11T13:00:00Z","rate":{"permitsPerSecond":0.5}}`
	export := "format=csv&status=paid&limit=3&cursor=b28"
	change := `{"stockDelta":-1,"endAt":"2096-11-11T13:00:00Z"}`
	limit := `{"algorithm":"nginx","permitsPerSecond":0.3,"burst":9,"nodelay":true}`
	const deadLetterID = "01a1fc15-9a10-78e6-83a6-b45fac893a06"
	form := "title=a&price=1&stock=1&rate.maxWaitMillis=5"
	for i := range routes {
		for who, goods := range []string{z.goods, z.spare, z.spare} {
			f.Add(uint8(i), uint8(who), goods, goods, "", "", "")
		}
		f.Add(uint8(i), uint8(0), z.sn, "", "", `{"goodsId":`+z.goods+`}`, "1")
		f.Add(uint8(i), uint8(0), z.path, "", "goodsId="+z.goods+"&decrStock=2", "", "")
		f.Add(uint8(i), uint8(1), z.spare, "", "", sale, "key")
		f.Add(uint8(i), uint8(1), z.spare, "", export, change, `"k"`)
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
