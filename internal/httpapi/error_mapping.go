package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/seckill"
)

// LimitError is a limiter's refusal with what only HTTP carries: the header fields of the IETF's draft, and a code of
// the rule's own in the place of the status (888, say; the HTTP status stays 429).
type LimitError struct {
	Refusal *seckill.Error
	Code    int               // 0 is the status
	Header  map[string]string // RateLimit, RateLimit-Policy
}

// Error is the refusal's.
func (d *LimitError) Error() string { return d.Refusal.Error() }

// Unwrap gives the refusal.
func (d *LimitError) Unwrap() error { return d.Refusal }

// refuse writes an error. It is the only place that turns errors into answers.
func (a *api) writeError(c *gin.Context, err error) {
	e := a.errorOf(c, err)
	env := envelope{Code: statusOf(e.Reason), Reason: e.Reason, Message: e.Message, Data: errorDataOf(e)}
	if d, ok := errors.AsType[*LimitError](err); ok {
		for name, value := range d.Header {
			c.Header(name, value)
		}
		if d.Code != 0 {
			env.Code = d.Code
		}
	}
	setErrorHeaders(c, e)
	a.writeEnvelope(c, env, statusOf(e.Reason))
}

// refusalOf tells refusals from troubles: a trouble's text goes to the log and stays there.
func (a *api) errorOf(c *gin.Context, err error) *seckill.Error {
	e, ok := errors.AsType[*seckill.Error](err)
	switch {
	case ok && e.Reason == seckill.Unavailable && e.Err != nil:
		a.logUnavailable(c, e)
	case ok && (e.Reason == reasonInternal || statusOf(e.Reason) != http.StatusInternalServerError):
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		e = seckill.NewUnavailable("this took too long, its outcome is unknown", err)
		a.logUnavailable(c, e)
	default:
		a.Log.ErrorContext(c.Request.Context(), "internal error", "route", c.FullPath(), "err", err)
		e = seckill.NewError(reasonInternal, "internal error")
	}
	return e
}

// warn logs what was unavailable, some of it: in a rush on something that is down, a line a second says it all.
func (a *api) logUnavailable(c *gin.Context, e *seckill.Error) {
	ctx := c.Request.Context()
	if ctx.Err() != nil {
		return // the caller has gone, and that is why
	}
	if left, ok := a.logThrottle.allow(a.now()); ok {
		a.Log.WarnContext(ctx, "unavailable", "route", c.FullPath(), "err", e, "not_logged", left)
	}
}

// errorDataOf is what a program may want to know of a refusal.
func errorDataOf(e *seckill.Error) any {
	if e.Field != "" {
		return errorData{"field": e.Field}
	}
	if len(e.Data) == 0 {
		return nil
	}
	return errorData(e.Data)
}

func setErrorHeaders(c *gin.Context, e *seckill.Error) {
	if e.Reason == seckill.Unauthenticated && c.Writer.Header().Get("WWW-Authenticate") == "" {
		c.Header("WWW-Authenticate", "Bearer")
	}
	if e.RetryAfter > 0 || e.Reason == seckill.RateLimited || e.Reason == seckill.Unavailable {
		c.Header("Retry-After", retryAfterSeconds(e.RetryAfter))
	}
}

// retryAfterSeconds rounds up, and never tells anybody to come back at once.
func retryAfterSeconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

func (a *api) noRoute(c *gin.Context) {
	a.writeError(c, seckill.NewError(seckill.NotFound, "there is no such call"))
}

func (a *api) noMethod(c *gin.Context) {
	a.writeError(c, seckill.NewError(reasonMethodNotAllowed, "%s is not a method of this call; see Allow", knownMethod(c.Request.Method)))
}

// knownMethod keeps a caller's invention out of the message.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	default:
		return "this"
	}
}
