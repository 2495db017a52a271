package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json/jsontext"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// limitError is a rate limiter's error with the parts that only HTTP has.
type limitError struct {
	Err  *apierror.Error
	Code int // replaces the envelope's code, not the status; 0: none
}

// Error returns the error's text.
func (e *limitError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *limitError) Unwrap() error { return e.Err }

// writeError writes the response for an error. It is the only function that does.
func (a *api) writeError(c *gin.Context, err error) {
	e := a.errorOf(c, err)
	status := statusOf(e.Reason)
	if errors.Is(e, salechange.ErrKeyReused) { // as the draft of Idempotency-Key demands
		status = http.StatusUnprocessableEntity
	}
	env := envelope{Code: status, Reason: e.Reason, Message: e.Message, Data: errorDataOf(e)}
	if limit, ok := errors.AsType[*limitError](err); ok && limit.Code != 0 {
		env.Code = limit.Code
	}
	setErrorHeaders(c, e)
	if prefersProblem(c) {
		a.writeProblem(c, env, status)
		return
	}
	a.writeEnvelope(c, env, status)
}

// problemType is the media type of RFC 9457.
const problemType = "application/problem+json"

// prefersProblem reports whether the caller prefers an error in the form of RFC 9457.
func prefersProblem(c *gin.Context) bool {
	h := c.Request.Header
	return h["Accept"] != nil && prefers(h, problemType)
}

// problem is an error in the form of RFC 9457, with the envelope's members as extensions. Its type
// is about:blank: reason distinguishes errors, and the API reference describes the reasons.
type problem struct {
	Type      string          `json:"type"`
	Title     string          `json:"title"`
	Status    int             `json:"status"`
	Detail    string          `json:"detail"`
	Code      int             `json:"code"`
	Reason    apierror.Reason `json:"reason"`
	Data      any             `json:"data"`
	RequestID string          `json:"requestId"`
}

func (a *api) writeProblem(c *gin.Context, e envelope, status int) {
	rc := requestContextOf(c.Request.Context())
	rc.reason = e.Reason
	p := problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: e.Message,
		Code: e.Code, Reason: e.Reason, RequestID: rc.requestID,
	}
	data, err := appendValue(nil, e.Data)
	if err != nil {
		a.Log.ErrorContext(c.Request.Context(), "encode an error's data", "err", err)
		data = []byte("{}")
	}
	p.Data = jsontext.Value(data)
	body, err := appendValue(nil, p)
	if err != nil { // its own members always have a JSON form
		panic(err)
	}
	c.Data(status, problemType, body)
	c.Abort()
}

// errorOf maps an error to what the caller may know. The text of an unexpected error is logged and
// never sent.
func (a *api) errorOf(c *gin.Context, err error) *apierror.Error {
	e, ok := errors.AsType[*apierror.Error](err)
	// A reason without a status of its own is a bug, and is answered like any unexpected error.
	known := ok &&
		(e.Reason == reasonInternal || statusOf(e.Reason) != http.StatusInternalServerError)
	switch {
	case ok && e.Reason == apierror.Unavailable && e.Err != nil:
		a.logUnavailable(c, e)
	case known:
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		e = apierror.NewUnavailable("this took too long, its outcome is unknown", err)
		a.logUnavailable(c, e)
	default:
		a.Log.ErrorContext(c.Request.Context(), "internal error", "route", c.FullPath(), "err", err)
		e = apierror.New(reasonInternal, "internal error")
	}
	return e
}

// logUnavailable logs an error, unless the client has left, which is its cause.
func (a *api) logUnavailable(c *gin.Context, e *apierror.Error) {
	if ctx := c.Request.Context(); ctx.Err() == nil {
		a.warn(ctx, "unavailable", "route", c.FullPath(), "err", e)
	}
}

// errorDataOf returns the envelope's data of an error.
func errorDataOf(e *apierror.Error) any {
	if e.Problems != nil {
		return problemData{Field: e.Problems[0].Field, Errors: e.Problems}
	}
	if e.Detail.Name == "" {
		return e.Detail.Value
	}
	return errorData(e.Detail)
}

// problemData is the data of a request with bad fields.
type problemData struct {
	Field  string            `json:"field"` // of the first
	Errors apierror.Problems `json:"errors"`
}

// setErrorHeaders sets the headers that a status requires. A 401 names a scheme (RFC 9110, 11.6.1).
// A 429 and a 503 have a time, so that clients do not retry at once.
func setErrorHeaders(c *gin.Context, e *apierror.Error) {
	if e.Reason == apierror.Unauthenticated && c.Writer.Header().Get("WWW-Authenticate") == "" {
		c.Header("WWW-Authenticate", "Bearer")
	}
	if e.RetryAfter > 0 || e.Reason == apierror.RateLimited || e.Reason == apierror.Unavailable {
		c.Header("Retry-After", gate.RetryAfter(e.RetryAfter))
	}
}

// noRoute answers unknown paths: people with a page, programs with JSON.
func (a *api) noRoute(c *gin.Context) {
	if a.Site != nil && wantsPage(c.Request) {
		res, err := a.stopPage(&request{gin: c}, apierror.NotFound, "missing")
		if err == nil {
			a.writeResponse(c, res)
			return
		}
		a.Log.ErrorContext(c.Request.Context(), "render the page of an unknown path", "err", err)
	}
	a.writeError(c, apierror.New(apierror.NotFound, "there is no such call"))
}

// wantsPage reports whether a browser asks for a document. The scripts of pages and other programs
// do not name text/html.
func wantsPage(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return reads && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// noMethod answers unknown methods of known paths; gin has set the header Allow.
func (a *api) noMethod(c *gin.Context) {
	a.writeError(c, apierror.New(reasonMethodNotAllowed,
		"%s is not a method of this call; see Allow", knownMethod(c.Request.Method)))
}

// knownMethod returns a standard method's name, and "this" for one that the caller invented: its
// text belongs neither into a message nor into the log.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions:
		return m
	default:
		return "this"
	}
}
