package limitservice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// deniedError is a denial, with the decision for its headers.
type deniedError struct{ gate.Result }

// Error names the rule, and the cause if Redis did not decide.
func (e *deniedError) Error() string {
	if e.Unavailable {
		return fmt.Sprintf("rule %s: redis did not decide in time: %v", e.Rule.Name, e.Cause)
	}
	return fmt.Sprintf("rule %s: limited", e.Rule.Name)
}

// envelope is the form of every answer.
type envelope struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

func failure(code int, reason, message string) envelope {
	return envelope{Code: code, Reason: reason, Message: message}
}

// writeError answers a failed call. The text of an error of Redis is logged and never sent.
func (s *HTTP) writeError(w http.ResponseWriter, r *http.Request, err error) {
	field, isField := errors.AsType[*ratelimit.FieldError](err)
	denied, isDenied := errors.AsType[*deniedError](err)
	switch {
	case isField:
		e := failure(http.StatusBadRequest, "BAD_REQUEST", field.Field+": "+field.Problem)
		e.Data = map[string]string{"field": field.Field}
		write(w, e)
	case errors.Is(err, rules.ErrNoRule):
		write(w, failure(http.StatusNotFound, "NOT_FOUND", "there is no such rule"))
	case isDenied && !denied.Unavailable:
		writeDenied(w, denied.Result)
	case errors.Is(err, gate.ErrDraining):
		unavailable(w, "this node is stopping")
	case errors.Is(err, context.Canceled): // the client has left
	default:
		s.log.WarnContext(r.Context(), "unavailable", "path", r.URL.Path, "err", err)
		unavailable(w, "redis did not answer in time")
	}
}

// writeDenied answers a denial. It sets Retry-After, unless no wait helps.
func writeDenied(w http.ResponseWriter, d gate.Result) {
	e := failure(http.StatusTooManyRequests, "RATE_LIMITED", "too many requests")
	if d.Rule.Message != "" {
		e.Message = d.Rule.Message
	}
	if d.Never {
		e.Data = map[string]bool{"never": true}
	} else {
		w.Header().Set("Retry-After", gate.RetryAfter(d.RetryAfter))
		e.Data = map[string]int64{"retryAfterMillis": ceilMillis(d.RetryAfter)}
	}
	write(w, e)
}

func unavailable(w http.ResponseWriter, message string) {
	w.Header().Set("Retry-After", "1")
	write(w, failure(http.StatusServiceUnavailable, "UNAVAILABLE", message))
}

func write(w http.ResponseWriter, e envelope) {
	if e.Data == nil {
		e.Data = struct{}{}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(e.Code)
	_ = json.MarshalWrite(w, e, json.Deterministic(true)) // fails only where the client has left
}
