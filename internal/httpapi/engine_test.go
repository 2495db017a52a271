package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/logging"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// serve sends a request to a router with one route, and returns the response and the recorded
// route and reason. The log gets every record.
func serve(
	log *strings.Builder, deps Deps, r *http.Request, handle handleFunc,
) (w *httptest.ResponseRecorder, recorded string) {
	deps.Log = logging.Logger(log, slog.LevelDebug, "text")
	deps.Recorder = func(route string) func(string, time.Duration) {
		return func(reason string, _ time.Duration) { recorded = route + " " + reason }
	}
	w = httptest.NewRecorder()
	newAPI(deps).engine([]route{{
		methods: read, path: "/sales/:goodsId", public: true, unlimited: true,
		handle: func(ctx context.Context, r *request) (response, error) {
			if err := r.permit(ctx, nil); err != nil {
				return response{}, err
			}
			return handle(ctx, r)
		},
	}}).ServeHTTP(w, r)
	return w, recorded
}

// TestErrorMapping_CoversEveryReason checks that every service reason maps to a status. A response
// exposes no part of an internal error.
func TestErrorMapping_CoversEveryReason(t *testing.T) {
	limited := apierror.New(apierror.RateLimited, "too many")
	limited.RetryAfter = 1001 * time.Millisecond
	own := &limitError{Err: limited, Code: 888}
	reached := apierror.New(apierror.LimitReached, "no more").With("orderSns", []string{"a"})
	for _, c := range []struct {
		err    error
		status int
		reason apierror.Reason
		code   int
		retry  string
		data   string
	}{
		{limited, 429, "RATE_LIMITED", 429, "2", `{}`},
		{own, 429, "RATE_LIMITED", 888, "2", `{}`},
		{apierror.New(apierror.RateLimited, "no time"), 429, "RATE_LIMITED", 429, "1", `{}`},
		{reached, 409, "LIMIT_REACHED", 409, "", `{"orderSns":["a"]}`},
		{
			apierror.NewUnavailable("redis is away", errors.New("dial 10.0.0.1")),
			503, "UNAVAILABLE", 503, "1", `{}`,
		},
		{fmt.Errorf("x: %w", apierror.New(apierror.Ended, "over")), 409, "ENDED", 409, "", `{}`},
		{
			fmt.Errorf("redis 10.0.0.1: %w", context.DeadlineExceeded),
			503, "UNAVAILABLE", 503, "1", `{}`,
		},
		{context.Canceled, 503, "UNAVAILABLE", 503, "1", `{}`},
		{errors.New("SELECT secret FROM 10.0.0.1"), 500, "INTERNAL", 500, "", `{}`},
		{apierror.New("NO_SUCH_REASON", "x"), 500, "INTERNAL", 500, "", `{}`},
		{
			apierror.NewBadField("a.b", "is bad"), 400, "BAD_REQUEST", 400, "",
			`{"field":"a.b","errors":[{"field":"a.b","message":"is bad"}]}`,
		},
		{apierror.New(apierror.Conflict, "\ufffd"), 409, "CONFLICT", 409, "", `{}`},
	} {
		name := c.err.Error()
		r := httptest.NewRequest("GET", "/sales/1", nil)
		w, recorded := serve(&strings.Builder{}, Deps{}, r,
			func(context.Context, *request) (response, error) { return response{}, c.err })
		require.Equal(t, c.status, w.Code, name)
		require.Equal(t, "/sales/:goodsId "+string(c.reason), recorded, name)
		require.Equal(t, c.retry, w.Header().Get("Retry-After"), name)
		body := w.Body.String()
		require.Contains(t, body, fmt.Sprintf(`{"code":%d,"reason":"%s",`, c.code, c.reason), name)
		require.Contains(t, body, `,"data":`+c.data+`,"requestId":"`, name)
		require.NotContains(t, body, "10.0.0.1", name)
	}
}

func TestMiddleware_AnswersPanics(t *testing.T) {
	var log strings.Builder
	w, recorded := serve(&log, Deps{}, httptest.NewRequest("GET", "/sales/1", nil),
		func(context.Context, *request) (response, error) { panic("a secret of ours") })
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Equal(t, "/sales/:goodsId INTERNAL", recorded)
	require.NotContains(t, w.Body.String(), "secret")
	require.NotContains(t, w.Body.String(), "goroutine")
	require.Contains(t, log.String(), "a secret of ours")
}

// TestClientIP_BelievesTrustedProxiesOnly reads the client's address in the access log of a request
// that claims another address. X-Real-IP counts nowhere.
func TestClientIP_BelievesTrustedProxiesOnly(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		trusted               []netip.Prefix
		from, forwarded, want string
	}{
		{nil, "192.0.2.1", "203.0.113.9", "192.0.2.1"},
		{proxies, "192.0.2.1", "203.0.113.9", "192.0.2.1"},
		{proxies, "10.1.2.3", "203.0.113.9", "203.0.113.9"},
		{proxies, "10.1.2.3", "203.0.113.9:4711", "203.0.113.9"},
		{proxies, "10.1.2.3", "203.0.113.8, 203.0.113.9:4711,10.9.9.9:80", "203.0.113.9"},
		{proxies, "10.1.2.3", "[2001:db8::1]:4711", "2001:db8::1"},
		{proxies, "10.1.2.3", "2001:db8::1", "2001:db8::1"},
		{nil, "192.0.2.1", "203.0.113.9:4711", "192.0.2.1"},
		{proxies, "10.1.2.3", "unknown", "10.1.2.3"},
		{proxies, "10.1.2.3", "", "10.1.2.3"},
	} {
		var log strings.Builder
		r := httptest.NewRequest("GET", "/sales/1", nil)
		r.RemoteAddr = c.from + ":1234"
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		r.Header.Set("X-Real-IP", "198.51.100.66")
		serve(&log, Deps{TrustedProxies: c.trusted}, r,
			func(context.Context, *request) (response, error) { return ok(nil), nil })
		require.Contains(t, log.String()+" ", " client="+c.want+" ")
	}
}

// TestUnknownProxy_IsOneWarning sends forwarded requests of two peers that are no trusted proxies,
// after those of a trusted one and of a peer that forwards nothing.
func TestUnknownProxy_IsOneWarning(t *testing.T) {
	var log strings.Builder
	a := newAPI(Deps{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Log:            slog.New(slog.NewTextHandler(&log, nil)),
	})
	engine := a.engine(a.probes())
	call := func(from, forwarded string) {
		r := httptest.NewRequest("GET", "/livez", nil)
		r.RemoteAddr = from + ":1234"
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		engine.ServeHTTP(httptest.NewRecorder(), r)
	}
	call("10.1.2.3", "203.0.113.9")
	call("192.0.2.1", "")
	require.NotContains(t, log.String(), "SECKILL_TRUSTED_PROXIES")
	call("192.0.2.1", "203.0.113.9")
	require.Contains(t, log.String(), "peer=192.0.2.1:1234")
	call("192.0.2.2", "203.0.113.9")
	require.Equal(t, 1, strings.Count(log.String(), "SECKILL_TRUSTED_PROXIES"), log.String())
}

// TestExport_HeadReadsNoRows checks that HEAD reads only the first page, whose error sets the
// status. The export would panic without a service to read the second page.
func TestExport_HeadReadsNoRows(t *testing.T) {
	page := make([]order.Order, exportPage)
	w, _ := serve(&strings.Builder{}, Deps{}, httptest.NewRequest("HEAD", "/sales/1", nil),
		func(_ context.Context, r *request) (response, error) {
			return newAPI(Deps{}).exportOrders(r, seckill.Sale{GoodsID: 43}, "", page), nil
		})
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Header().Get("Content-Type"), "text/csv")
	require.Empty(t, w.Body.String())
}

// TestServer_AllowsLongWaits checks that the read limit of a request, with a body or without one,
// does not limit its handler.
func TestServer_AllowsLongWaits(t *testing.T) {
	t.Parallel()
	h := newAPI(Deps{Log: slog.New(slog.DiscardHandler)}).engine([]route{{
		methods: read + " " + post, path: "/", public: true, unlimited: true, extraTime: maxWait,
		handle: func(ctx context.Context, r *request) (response, error) {
			select {
			case <-time.After(readTimeout + 500*time.Millisecond):
			case <-ctx.Done():
			}
			return ok(nil), cmp.Or(ctx.Err(), r.permit(ctx, nil))
		},
	}})
	srv := httptest.NewUnstartedServer(h)
	srv.Config = Server(h, "", slog.New(slog.DiscardHandler))
	srv.Start()
	defer srv.Close()
	var all sync.WaitGroup
	for method, body := range map[string]string{"GET": "", "POST": "{}"} {
		all.Go(func() {
			req := httptest.NewRequest(method, srv.URL, strings.NewReader(body))
			req.RequestURI = "" // a client's request has none
			res, err := srv.Client().Do(req)
			if assert.NoError(t, err, method) {
				assert.NoError(t, res.Body.Close())
				assert.Equal(t, http.StatusOK, res.StatusCode, method)
			}
		})
	}
	all.Wait()
}

// TestHandler_FailsWithoutPermit checks that a handler which does not call permit fails each of its
// requests, so that its first test shows it.
func TestHandler_FailsWithoutPermit(t *testing.T) {
	for public, status := range map[bool]int{true: 500, false: 401} {
		w := httptest.NewRecorder()
		newAPI(Deps{Log: slog.New(slog.DiscardHandler)}).engine([]route{{
			methods: read, path: "/", public: public,
			handle: func(context.Context, *request) (response, error) { return ok(nil), nil },
		}}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		require.Equal(t, status, w.Code)
	}
}

func TestPaymentCallback_NeedsASecret(t *testing.T) {
	w := httptest.NewRecorder()
	newAPI(Deps{Log: slog.New(slog.DiscardHandler)}).engine([]route{{
		methods: post, path: "/payments/callback", public: true, signed: true,
	}}).ServeHTTP(w, httptest.NewRequest("POST", "/payments/callback", strings.NewReader("{}")))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), "SECKILL_PAYMENT_SECRET is not set")
}

// TestOrderResponse_HidesUnreadablePhones checks that a phone number without its key leaves a
// record in the log. Neither the response nor the log has any part of the number.
func TestOrderResponse_HidesUnreadablePhones(t *testing.T) {
	phones := must.Get(auth.NewPhones(auth.DerivedPhoneKey([]byte("the order secret"))))(t)
	var log strings.Builder
	a := newAPI(Deps{Phones: phones, Log: logging.Logger(&log, slog.LevelDebug, "text")})
	o := order.Order{Status: order.Failed, FailureReason: order.FailedOversold}
	o.Phone = "~1.gone.AAAA"
	got := must.Get(appendValue(nil, a.newOrderResponse(t.Context(), o)))(t)
	require.Contains(t, string(got), `"status":"failed","failureReason":"NO_STOCK"`)
	require.Contains(t, string(got), `"phoneNumber":""`)
	require.Contains(t, log.String(), "a buyer's data cannot be decrypted")
	require.NotContains(t, log.String(), "AAAA")
}

// stalledWriter is a response to a client that reads nothing.
type stalledWriter struct {
	*httptest.ResponseRecorder
	reached, resume chan bool
}

func (w stalledWriter) Write(text []byte) (int, error) {
	w.reached <- true
	<-w.resume
	return len(text), nil
}

// TestExport_TakesTurns checks that an export waits while another one works on a page, until its
// client leaves. A client that reads nothing delays no other export.
func TestExport_TakesTurns(t *testing.T) {
	a := newAPI(Deps{Site: new(web.Site)})
	export := func(ctx context.Context, w http.ResponseWriter) {
		c, _ := gin.CreateTestContext(w)
		c.Request = httptest.NewRequestWithContext(ctx, "GET", "/", nil)
		page := []order.Order{{Amount: 1}}
		a.exportOrders(&request{gin: c}, seckill.Sale{GoodsID: 43}, "", page).stream(c)
	}
	stalled := stalledWriter{httptest.NewRecorder(), make(chan bool), make(chan bool)}
	done := make(chan bool)
	go func() {
		defer close(done)
		export(context.Background(), stalled)
	}()
	<-stalled.reached
	w := httptest.NewRecorder()
	export(t.Context(), w)
	require.Equal(t, 2, strings.Count(w.Body.String(), "\n"), "the columns and the order")
	close(stalled.resume)
	<-done

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, a.exportTurn(t.Context(), func() error {
		require.PanicsWithError(t, http.ErrAbortHandler.Error(), func() {
			export(gone, httptest.NewRecorder())
		})
		return nil
	}))
}
