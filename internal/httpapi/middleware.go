package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/apierror"
)

const maxRequestID = 128

// requestMiddleware wraps every request: request id, security headers, trace, metrics and the
// recovery from panics.
func (a *api) requestMiddleware(c *gin.Context) {
	started := time.Now()
	rc := &requestContext{
		Context: c.Request.Context(), gin: c,
		requestID: requestID(c.Request.Header["X-Request-Id"]),
	}
	ctx := context.Context(rc)
	if a.Trace != nil {
		traced, end := a.Trace(ctx, c.Request, cmp.Or(c.FullPath(), "other"))
		ctx = traced
		defer func() { end(c.Writer.Status(), string(rc.reason)) }()
	}
	c.Request = c.Request.WithContext(ctx)
	setSecurityHeaders(c.Writer.Header(), rc.requestID)
	defer a.observe(c, rc, started)
	defer a.recoverPanic(c)
	removePorts(c.Request.Header["X-Forwarded-For"])
	a.warnOfUnknownProxy(c.Request)
	// Gin takes an empty segment for a parameter. The key of a limiter may have any slashes.
	if strings.Contains(strings.TrimSuffix(c.Request.URL.Path, c.Param("key")), "//") {
		a.noRoute(c)
		return
	}
	c.Next()
}

// removePorts removes the ports that some balancers add to the addresses of X-Forwarded-For. Gin
// takes an address with a port for none, and all buyers would have the limits of the balancer.
func removePorts(values []string) {
	for i, value := range values {
		if !strings.Contains(value, ":") {
			continue
		}
		hops := strings.Split(value, ",")
		for j, hop := range hops {
			if at, err := netip.ParseAddrPort(strings.TrimSpace(hop)); err == nil {
				hops[j] = at.Addr().String()
			}
		}
		values[i] = strings.Join(hops, ",")
	}
}

// warnOfUnknownProxy warns of the first caller that forwards an address and is no trusted proxy. It
// may be the installation's own proxy: nothing else shows that all buyers share its limits. Further
// warnings would let strangers fill the log.
func (a *api) warnOfUnknownProxy(r *http.Request) {
	if len(r.Header["X-Forwarded-For"]) == 0 || a.unknownProxy.Load() || a.fromTrustedProxy(r) ||
		!a.unknownProxy.CompareAndSwap(false, true) {
		return
	}
	a.Log.Warn("a caller that SECKILL_TRUSTED_PROXIES does not name sent X-Forwarded-For: "+
		"if it is your proxy, name it, or all buyers together have the limits of its address",
		"peer", r.RemoteAddr)
}

// requestID returns the caller's id where it is safe in headers and logs, else a new one. A proxy
// may have logged its id, so keeping it lets an operator follow one request through both logs.
func requestID(received []string) string {
	if len(received) == 1 && received[0] != "" && len(received[0]) <= maxRequestID &&
		!strings.ContainsFunc(received[0], func(r rune) bool { return r < '!' || r > '~' }) {
		return received[0]
	}
	return rand.Text()
}

// isInvalidIDRune reports whether a character is in no id of a payment or an order.
func isInvalidIDRune(r rune) bool {
	return !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyz"+
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ._-", r)
}

// setSecurityHeaders follows OWASP's REST security cheat sheet: no sniffing, framing or caching.
func setSecurityHeaders(h http.Header, id string) {
	h["X-Request-Id"] = []string{id}
	h["X-Content-Type-Options"] = noSniff
	h["Content-Security-Policy"] = denyFraming
	h["Referrer-Policy"] = noReferrer
	h["Cache-Control"] = noStore
}

// All responses share these values. That saves allocations, and is safe because handlers replace
// the values of a header and never change them.
var (
	noSniff     = []string{"nosniff"}
	denyFraming = []string{"default-src 'none'; frame-ancestors 'none'"}
	noReferrer  = []string{"no-referrer"}
	noStore     = []string{"no-store"}
	jsonText    = []string{"application/json; charset=utf-8"}
)

// observe records a response. Refusals go to the metrics and not to the log, because a rush would
// fill the log with them.
func (a *api) observe(c *gin.Context, rc *requestContext, started time.Time) {
	took := time.Since(started)
	route := c.FullPath()
	if report := a.reporters[route]; report != nil {
		report(string(rc.reason), took)
	}
	if rc.goodsID != 0 {
		a.ErrorCounts.Refused(rc.goodsID, rc.reason)
	}
	if route == purchaseRoute {
		a.purchaseLatency.record(started, took)
	}
	ctx := c.Request.Context()
	if !a.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	a.Log.DebugContext(ctx, "request", "method", knownMethod(c.Request.Method), "route",
		cmp.Or(route, "other"), "status", c.Writer.Status(), "reason", string(rc.reason), "took",
		took, "client", c.ClientIP())
}

// recoverPanic answers a panic with INTERNAL. Where a response has begun it closes the connection,
// so that the client detects the incomplete response. The deferred call must be recoverPanic
// itself, because recover works in the deferred function only.
func (a *api) recoverPanic(c *gin.Context) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http documents this very value
		panic(p)
	}
	a.Log.ErrorContext(c.Request.Context(), "panic",
		"route", c.FullPath(), "err", p, "stack", string(debug.Stack()))
	if c.Writer.Written() {
		panic(http.ErrAbortHandler)
	}
	a.writeError(c, apierror.New(reasonInternal, "internal error"))
}
