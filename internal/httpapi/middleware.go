package httpapi

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/logging"
	"flashsale.dev/seckill/internal/seckill"
)

const maxRequestID = 64

// frame is round every request: its id, the safe headers, the guard against panics, and what is observed of it.
func (a *api) requestMiddleware(c *gin.Context) {
	started := a.now()
	x := &requestContext{gin: c, requestID: requestID(c.Request.Header["X-Request-Id"])}
	ctx := withRequestContext(logging.WithRequestID(c.Request.Context(), x.requestID), x)
	if a.Tracer != nil {
		traced, end := a.Tracer.Request(ctx, c.Request, cmp.Or(c.FullPath(), "other"))
		ctx = traced
		defer func() { end(c.Writer.Status(), string(x.reason)) }()
	}
	c.Request = c.Request.WithContext(ctx)
	safeHeaders(c.Writer.Header(), x.requestID)
	defer a.observe(c, x, started)
	defer a.recoverPanic(c)
	if strings.Contains(c.Request.URL.Path, "//") { // gin would take an empty segment for a parameter
		a.noRoute(c)
		return
	}
	c.Next()
}

// requestID takes the caller's id where it is one that may stand in headers and logs, else makes one.
func requestID(given []string) string {
	if len(given) == 1 && given[0] != "" && len(given[0]) <= maxRequestID && !strings.ContainsFunc(given[0], isInvalidIDRune) {
		return given[0]
	}
	return rand.Text()
}

func isInvalidIDRune(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r == '.', r == '_', r == '-':
		return false
	default:
		return true
	}
}

// safeHeaders are those of an API that no browser should guess about, frame or keep (OWASP REST security).
func safeHeaders(h http.Header, id string) {
	h["X-Request-Id"] = []string{id}
	h["X-Content-Type-Options"] = noSniff
	h["Content-Security-Policy"] = noFrames
	h["Referrer-Policy"] = noReferrer
	h["Cache-Control"] = noStore
}

// Values that all answers share: header values are put in place of one another, never changed.
var (
	noSniff    = []string{"nosniff"}
	noFrames   = []string{"default-src 'none'; frame-ancestors 'none'"}
	noReferrer = []string{"no-referrer"}
	noStore    = []string{"no-store"}
	jsonText   = []string{"application/json; charset=utf-8"}
)

// observe hears of the answer. Refusals are for the metrics; a line for each would drown the log in a rush.
func (a *api) observe(c *gin.Context, x *requestContext, started time.Time) {
	took := a.now().Sub(started)
	route := c.FullPath()
	a.reporters[route](string(x.reason), took)
	if x.goodsID != 0 && a.Refusals != nil {
		a.Refusals.Refused(x.goodsID, x.reason)
	}
	if route == purchaseRoute {
		a.pulse.observe(started, took)
	}
	if !a.Log.Enabled(c.Request.Context(), slog.LevelDebug) {
		return
	}
	a.Log.DebugContext(c.Request.Context(), "request", "method", knownMethod(c.Request.Method), "route", cmp.Or(route, "other"),
		"status", c.Writer.Status(), "reason", string(x.reason), "took", took, "client", c.ClientIP())
}

// recoverPanic answers a panic in the one shape, or cuts the connection where an answer has begun.
func (a *api) recoverPanic(c *gin.Context) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // the value itself, as net/http documents it
		panic(p)
	}
	a.Log.ErrorContext(c.Request.Context(), "panic", "route", c.FullPath(), "err", p, "stack", string(debug.Stack()))
	if c.Writer.Written() {
		panic(http.ErrAbortHandler)
	}
	a.writeError(c, seckill.NewError(reasonInternal, "internal error"))
}
