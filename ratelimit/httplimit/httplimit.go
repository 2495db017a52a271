// Package httplimit limits the requests of a net/http server by a ratelimit.Limiter.
//
//	limited := httplimit.New(limiter, httplimit.Options{KeyFunc: httplimit.RemoteIP})
//	http.ListenAndServe(":8080", limited.Handler(mux))
package httplimit

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/ratelimit"
)

// Options are the settings of a Middleware. Only KeyFunc is required.
type Options struct {
	// KeyFunc returns the key of a request. Requests with an empty key share one limiter, so that
	// nobody avoids the limit by leaving a header out.
	KeyFunc func(*http.Request) string
	// OnDenied answers a denied request. By default it is 429 with a line of text. The headers
	// RateLimit, RateLimit-Policy and Retry-After are already set.
	OnDenied func(http.ResponseWriter, *http.Request, ratelimit.Decision)
	// OnError answers a request that could not be decided, also one whose context's deadline passed
	// meanwhile. By default it is 503. It is not called for a client that has left.
	OnError func(http.ResponseWriter, *http.Request, error)
	// Wait makes requests wait for permits, up to the limit's MaxWait. By default they are denied
	// at once.
	Wait bool
}

// Middleware takes one permit for each request.
type Middleware struct {
	limiter *ratelimit.Limiter
	options Options
}

// New makes a middleware.
func New(limiter *ratelimit.Limiter, options Options) *Middleware {
	if options.OnDenied == nil {
		options.OnDenied = tooMany
	}
	if options.OnError == nil {
		options.OnError = unavailable
	}
	return &Middleware{limiter: limiter, options: options}
}

// Handler passes admitted requests to next. It panics without a KeyFunc, as each request would.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if m.options.KeyFunc == nil {
		panic("httplimit: Options.KeyFunc is nil")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.Admit(w, r, m.options.KeyFunc(r)) {
			next.ServeHTTP(w, r)
		}
	})
}

// Admit takes a permit of the key. If it returns false, it has answered the request. Adapters for
// other routers use it.
func (m *Middleware) Admit(w http.ResponseWriter, r *http.Request, key string) bool {
	reservation, err := m.reserve(r.Context(), key)
	if err == nil {
		err = reservation.Wait(r.Context()) // ErrLimited at once if it is denied
		reservation.AddHeaders(w.Header())
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, ratelimit.ErrLimited):
		m.deny(w, r, reservation.Decision)
	case !errors.Is(r.Context().Err(), context.Canceled): // a client that has left reads nothing
		m.options.OnError(w, r, err)
	}
	return false
}

func (m *Middleware) reserve(ctx context.Context, key string) (*ratelimit.Reservation, error) {
	if m.options.Wait {
		return m.limiter.Reserve(ctx, key, 1)
	}
	return m.limiter.ReserveNow(ctx, key, 1)
}

// deny sets Retry-After unless no retry can succeed.
func (m *Middleware) deny(w http.ResponseWriter, r *http.Request, d ratelimit.Decision) {
	if !d.Never {
		w.Header().Set("Retry-After", gate.RetryAfter(d.RetryAfter))
	}
	m.options.OnDenied(w, r, d)
}

func tooMany(w http.ResponseWriter, _ *http.Request, _ ratelimit.Decision) {
	http.Error(w, "too many requests", http.StatusTooManyRequests)
}

func unavailable(w http.ResponseWriter, _ *http.Request, _ error) {
	http.Error(w, "the rate limiter does not answer", http.StatusServiceUnavailable)
}

// RemoteIP is a KeyFunc: the address of the connection, of IPv6 the first 64 bits, because one
// subscriber usually has them all. Behind a proxy it is the proxy's address.
func RemoteIP(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	key, _ := rules.IPKey(from.Addr())
	return key
}

// Header returns a KeyFunc: the value of a header, such as an API key that was checked before.
// Clients choose headers, so do not use one that was not checked.
func Header(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}
