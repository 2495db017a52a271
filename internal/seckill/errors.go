package seckill

import (
	"errors"
	"fmt"
	"time"
)

// Reason is the stable word by which programs tell answers apart; the contract lists them.
type Reason string

// The reasons of the contract.
const (
	BadRequest      Reason = "BAD_REQUEST"
	Unauthenticated Reason = "UNAUTHENTICATED"
	Forbidden       Reason = "FORBIDDEN"
	BadPath         Reason = "BAD_PATH"
	NotFound        Reason = "NOT_FOUND"
	NotStarted      Reason = "NOT_STARTED"
	Ended           Reason = "ENDED"
	SoldOut         Reason = "SOLD_OUT"
	LimitReached    Reason = "LIMIT_REACHED"
	Conflict        Reason = "CONFLICT"
	RateLimited     Reason = "RATE_LIMITED"
	Unavailable     Reason = "UNAVAILABLE"
)

// Error is a refusal that the caller is told about. Anything else that goes wrong is an ordinary error,
// whose text stays inside.
type Error struct {
	Reason     Reason
	Message    string         // a sentence for people
	Field      string         // the place of a BadRequest, as a dotted path; else empty
	Data       map[string]any // what a program may want to know (available, orderSns); else nil
	RetryAfter time.Duration  // when asking again may help; 0 where it is not known
	Err        error          // the cause, for the log only; else nil
}

// Error gives the reason, the message and the cause.
func (e *Error) Error() string {
	s := string(e.Reason) + ": " + e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// NewError makes an Error of a reason and a sentence.
func NewError(r Reason, format string, args ...any) *Error {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return &Error{Reason: r, Message: format}
}

// NewFieldError says that one field of a request is malformed.
func NewFieldError(field, format string, args ...any) *Error {
	return &Error{Reason: BadRequest, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// NewUnavailable says that something behind could not be asked, so that the step was not taken or its outcome is unknown.
func NewUnavailable(what string, err error) *Error {
	return &Error{Reason: Unavailable, Message: what + "; please ask again", RetryAfter: time.Second, Err: err}
}

// OrUnavailable leaves a refusal as it is and makes anything else an Unavailable.
func OrUnavailable(err error, what string) error {
	if err == nil || ReasonOf(err) != "" {
		return err
	}
	return NewUnavailable(what, err)
}

// NewRebuilding is the refusal of a sale whose gate is shut; it opens again by itself.
func NewRebuilding(err error) *Error {
	return NewUnavailable("the sale is being put in order for a moment", err)
}

// NewNoSuchSale refuses a goods id that names no sale, or a draft.
func NewNoSuchSale() error { return NewError(NotFound, "there is no such sale") }

// ReasonOf finds the reason of an error, or "" where it is not a refusal.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// ErrNoSuchGoods says that a goods has no row in MySQL.
var ErrNoSuchGoods = errors.New("no such goods")

// ErrNotLoaded says that Redis knows nothing of a goods: it was never exposed, is long over, or Redis lost it.
var ErrNotLoaded = errors.New("redis has no state of this goods")
