package httpapi

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/seckill"
)

// Reasons beside those of seckill: the good ones, and two that only HTTP knows.
const (
	reasonOK               seckill.Reason = "OK"
	reasonQueued           seckill.Reason = "QUEUED"
	reasonCreated          seckill.Reason = "CREATED"
	reasonMethodNotAllowed seckill.Reason = "METHOD_NOT_ALLOWED"
	reasonInternal         seckill.Reason = "INTERNAL"
)

// response is what a handler says when all went well.
type response struct {
	reason seckill.Reason
	data   any
	public bool   // holds nothing personal
	etag   string // of what is public and may be asked for again; "" for none
	// stream writes the answer itself, for as long as it takes; then there is nothing else in it.
	stream func(c *gin.Context)
}

func ok(data any) response { return response{reason: reasonOK, data: data} }

// envelope is the one shape.
type envelope struct {
	Code      int            `json:"code"`
	Reason    seckill.Reason `json:"reason"`
	Message   string         `json:"message"`
	Data      any            `json:"data"`
	RequestID string         `json:"requestId"`
}

// statusOf is the one table of reasons to statuses.
func statusOf(r seckill.Reason) int {
	switch r {
	case reasonOK:
		return http.StatusOK
	case reasonCreated:
		return http.StatusCreated
	case reasonQueued:
		return http.StatusAccepted
	case seckill.BadRequest:
		return http.StatusBadRequest
	case seckill.Unauthenticated:
		return http.StatusUnauthorized
	case seckill.Forbidden, seckill.BadPath:
		return http.StatusForbidden
	case seckill.NotFound:
		return http.StatusNotFound
	case reasonMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case seckill.NotStarted, seckill.Ended, seckill.SoldOut, seckill.LimitReached, seckill.Conflict:
		return http.StatusConflict
	case seckill.RateLimited:
		return http.StatusTooManyRequests
	case seckill.Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

func messageOf(r seckill.Reason) string {
	switch r {
	case reasonQueued:
		return "queued"
	case reasonCreated:
		return "created"
	default:
		return "ok"
	}
}

func (a *api) writeResponse(c *gin.Context, ans response) {
	if ans.stream != nil {
		requestContextOf(c.Request.Context()).reason = reasonOK
		ans.stream(c)
		c.Abort()
		return
	}
	if ans.public {
		c.Header("Cache-Control", "no-cache")
	}
	if ans.etag != "" && a.writeNotModified(c, ans) {
		return
	}
	a.writeEnvelope(c, envelope{Code: statusOf(ans.reason), Reason: ans.reason, Message: messageOf(ans.reason), Data: ans.data}, statusOf(ans.reason))
}

// write puts an envelope on the wire; every answer passes here.
func (a *api) writeEnvelope(c *gin.Context, e envelope, status int) {
	x := requestContextOf(c.Request.Context())
	e.RequestID = x.requestID
	body, err := appendEnvelope(make([]byte, 0, usualResponseSize), e)
	if err != nil { // a data type of ours that can't be written: a bug
		a.Log.ErrorContext(c.Request.Context(), "write an answer", "err", err)
		e.Code, e.Reason, e.Message, e.Data, status = http.StatusInternalServerError, reasonInternal, "internal error", nil, http.StatusInternalServerError
		body, _ = appendEnvelope(nil, e)
	}
	x.reason = e.Reason
	c.Writer.Header()["Content-Type"] = jsonText
	c.Status(status)
	_, _ = c.Writer.Write(body) // a client that has gone hears nothing
	c.Abort()
}

// usualResponseSize is how long most answers are, in bytes.
const usualResponseSize = 256

// timestamp is a time as answers give it: RFC 3339 in UTC with milliseconds.
type timestamp time.Time

// IsZero lets omitzero leave out a time that is not yet.
func (s timestamp) IsZero() bool { return time.Time(s).IsZero() }

// AppendText writes it.
func (s timestamp) AppendText(b []byte) ([]byte, error) {
	return time.Time(s).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z"), nil
}

// MarshalText writes it too.
func (s timestamp) MarshalText() ([]byte, error) { return s.AppendText(nil) }
