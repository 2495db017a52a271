package seckill

import (
	"errors"
	"time"

	"flashsale.dev/seckill/internal/apierror"
)

// ErrNoSuchGoods means that a goods id has no row in MySQL.
var ErrNoSuchGoods = errors.New("no such goods")

// ErrNotLoaded means that Redis has no state of a sale: it was never exposed, it is retired, or
// Redis lost it.
var ErrNotLoaded = errors.New("redis has no state of this goods")

// NewRebuilding returns the refusal of a sale whose gate is shut. The rebuild opens it again.
func NewRebuilding(err error) *apierror.Error {
	return apierror.NewUnavailable("the sale is being put in order for a moment", err)
}

// NewNoSuchSale refuses a goods id that names no sale, or a draft.
func NewNoSuchSale() error { return apierror.New(apierror.NotFound, "there is no such sale") }

// NewWaiting refuses a buyer whose turn in the waiting room has not come, or is over.
func NewWaiting() *apierror.Error {
	e := apierror.New(apierror.Waiting, "it is not your turn; your place is in the waiting room")
	e.RetryAfter = time.Second
	return e
}
