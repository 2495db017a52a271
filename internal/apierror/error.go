// Package apierror is the errors that clients get: a reason of the contract, a sentence for people,
// and data for programs. Each step of the work returns them, and the HTTP layer only maps a reason
// to its status. Any other error stays in the server's log.
package apierror

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Reason is the stable code by which clients distinguish errors; the contract lists them.
type Reason string

// The reasons of the contract.
const (
	BadRequest      Reason = "BAD_REQUEST"
	Unauthenticated Reason = "UNAUTHENTICATED"
	Forbidden       Reason = "FORBIDDEN"
	BadPath         Reason = "BAD_PATH"
	CodeRequired    Reason = "CODE_REQUIRED"
	CodeInvalid     Reason = "CODE_INVALID"
	CodeUsed        Reason = "CODE_USED"
	NotFound        Reason = "NOT_FOUND"
	NotStarted      Reason = "NOT_STARTED"
	Ended           Reason = "ENDED"
	SoldOut         Reason = "SOLD_OUT"
	LimitReached    Reason = "LIMIT_REACHED"
	Conflict        Reason = "CONFLICT"
	RateLimited     Reason = "RATE_LIMITED"
	Waiting         Reason = "WAITING"
	Unavailable     Reason = "UNAVAILABLE"
)

// Error is a refusal whose reason and message the client gets. The text of any other error remains
// on the server.
type Error struct {
	Reason     Reason
	Message    string        // a sentence for the user
	Problems   Problems      // the bad fields of a BadRequest; else nil
	Detail     Detail        // for programs (available, orderSns); else zero
	RetryAfter time.Duration // earliest useful retry; 0 if unknown
	Err        error         // the cause, for the log only
}

// Detail is the data of an Error: one field, or without a name the whole data.
type Detail struct {
	Name  string
	Value any
}

// Error returns the reason, the message and the cause.
func (e *Error) Error() string {
	s := string(e.Reason) + ": " + e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// With sets the detail for programs and returns the error.
func (e *Error) With(name string, value any) *Error {
	e.Detail = Detail{name, value}
	return e
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an Error with a reason and a formatted message.
func New(r Reason, format string, args ...any) *Error {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return &Error{Reason: r, Message: format}
}

// NewBadField returns a BadRequest for one field of a request.
func NewBadField(field, format string, args ...any) *Error {
	return newBadRequest(Problems{{field, fmt.Sprintf(format, args...)}})
}

// newBadRequest returns the refusal of a request for its problems. The message has the first one.
func newBadRequest(p Problems) *Error {
	return &Error{Reason: BadRequest, Problems: p, Message: p[0].Field + ": " + p[0].Message}
}

// problem is one bad field of a request.
type problem struct {
	Field   string `json:"field"`   // dotted path, the name of a header, "query" or "body"
	Message string `json:"message"` // the rest of a sentence that begins with the field
}

// Problems are the bad fields of a request, in the order of their checks, each once.
type Problems []problem

// Add records a problem with a field that has none yet.
func (p *Problems) Add(field, format string, args ...any) {
	if !slices.ContainsFunc(*p, func(q problem) bool { return q.Field == field }) {
		*p = append(*p, problem{field, fmt.Sprintf(format, args...)})
	}
}

// Check records a problem with a field if it is bad.
func (p *Problems) Check(bad bool, field, format string, args ...any) {
	if bad {
		p.Add(field, format, args...)
	}
}

// Join adds the problems of another BadRequest, and returns any other error.
func (p *Problems) Join(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Problems == nil {
		return err
	}
	for _, q := range e.Problems {
		p.Add(q.Field, "%s", q.Message)
	}
	return nil
}

// Err returns the BadRequest of all problems, or nil without any.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return newBadRequest(p)
}

// NewUnavailable returns the error of a step that a failed dependency prevented, or whose outcome
// is unknown. what is the first clause of the message, such as "the sale can't be read"; err is the
// cause, for the log.
func NewUnavailable(what string, err error) *Error {
	return &Error{
		Reason: Unavailable, Message: what + "; please ask again", RetryAfter: time.Second,
		Err: err,
	}
}

// OrUnavailable returns nil and every *Error unchanged, and wraps any other error with
// NewUnavailable.
func OrUnavailable(err error, what string) error {
	if err == nil || ReasonOf(err) != "" {
		return err
	}
	return NewUnavailable(what, err)
}

// ReasonOf returns the reason of an error, or "" if it is not a refusal.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
