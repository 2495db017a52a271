package httpapi

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
)

// Reasons that package seckill does not have: success, and two errors that exist only in HTTP.
const (
	reasonOK               apierror.Reason = "OK"
	reasonQueued           apierror.Reason = "QUEUED"
	reasonCreated          apierror.Reason = "CREATED"
	reasonMethodNotAllowed apierror.Reason = "METHOD_NOT_ALLOWED"
	reasonInternal         apierror.Reason = "INTERNAL"
)

// response is a handler's successful result.
type response struct {
	reason apierror.Reason
	data   any
	public bool   // holds nothing personal, so caches may store it and revalidate
	etag   string // "" for none
	// location is the path of what was created or queued; "" for none.
	location string
	// stream writes the whole response itself. Of the other fields only reason is used then: the
	// metrics have it, or OK.
	stream func(c *gin.Context)
}

func ok(data any) response { return response{reason: reasonOK, data: data} }

// envelope is the shape of every JSON response.
type envelope struct {
	Code      int             `json:"code"`
	Reason    apierror.Reason `json:"reason"`
	Message   string          `json:"message"`
	Data      any             `json:"data"`
	RequestID string          `json:"requestId"`
}

// statusOf is the only mapping of reasons to HTTP statuses. An unknown reason is 500, so that tests
// and alerts reveal a missing mapping.
func statusOf(r apierror.Reason) int {
	switch r {
	case reasonOK:
		return http.StatusOK
	case reasonCreated:
		return http.StatusCreated
	case reasonQueued:
		return http.StatusAccepted
	case apierror.BadRequest:
		return http.StatusBadRequest
	case apierror.Unauthenticated:
		return http.StatusUnauthorized
	case apierror.Forbidden, apierror.BadPath, apierror.CodeRequired, apierror.CodeInvalid,
		apierror.CodeUsed:
		return http.StatusForbidden
	case apierror.NotFound:
		return http.StatusNotFound
	case reasonMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case apierror.NotStarted, apierror.Ended, apierror.SoldOut, apierror.LimitReached,
		apierror.Conflict:
		return http.StatusConflict
	case apierror.RateLimited, apierror.Waiting:
		return http.StatusTooManyRequests
	case apierror.Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// messageOf returns the message of a success.
func messageOf(r apierror.Reason) string {
	switch r {
	case reasonQueued:
		return "queued"
	case reasonCreated:
		return "created"
	default:
		return "ok"
	}
}

// writeResponse writes a handler's successful result. Only what is public may be cached;
// setSecurityHeaders has forbidden it for everything else.
func (a *api) writeResponse(c *gin.Context, res response) {
	if res.stream != nil {
		requestContextOf(c.Request.Context()).reason = cmp.Or(res.reason, reasonOK)
		res.stream(c)
		c.Abort()
		return
	}
	if res.public {
		c.Header("Cache-Control", "no-cache")
	}
	if res.etag != "" && a.writeNotModified(c, res) {
		return
	}
	if res.location != "" {
		c.Writer.Header()["Location"] = []string{res.location}
	}
	status := statusOf(res.reason)
	a.writeEnvelope(c, envelope{
		Code: status, Reason: res.reason, Message: messageOf(res.reason), Data: res.data,
	}, status)
}

// writeEnvelope writes a JSON response, of success or error.
func (a *api) writeEnvelope(c *gin.Context, e envelope, status int) {
	rc := requestContextOf(c.Request.Context())
	e.RequestID = rc.requestID
	body, err := appendEnvelope(make([]byte, 0, usualResponseSize), e)
	if err != nil { // a data type that cannot be encoded is a bug
		a.Log.ErrorContext(c.Request.Context(), "encode response", "err", err)
		status = http.StatusInternalServerError
		e.Code, e.Reason, e.Message, e.Data = status, reasonInternal, "internal error", nil
		body, _ = appendEnvelope(nil, e)
	}
	rc.reason = e.Reason
	c.Writer.Header()["Content-Type"] = jsonText
	if len(body) > maxUncounted { // else HEAD would have other headers than GET
		c.Writer.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	c.Status(status)
	_, _ = c.Writer.Write(body) // fails only where the client has left
	c.Abort()
}

// maxUncounted is the longest body whose length net/http counts itself.
const maxUncounted = 2048

// usualResponseSize is enough for most responses, in bytes.
const usualResponseSize = 256

// timestamp is a time in responses: RFC 3339 in UTC with milliseconds.
type timestamp time.Time

// IsZero lets omitzero leave out an unset time.
func (t timestamp) IsZero() bool { return time.Time(t).IsZero() }

// AppendText appends the time's text. It never fails.
func (t timestamp) AppendText(b []byte) ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(b, event.TimeFormat), nil
}

// MarshalText returns the time's text.
func (t timestamp) MarshalText() ([]byte, error) { return t.AppendText(nil) }
