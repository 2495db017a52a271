package accesscode

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/seckill"
)

const (
	maxBatch = 256
	// claimDeadline bounds the statements that a batch of claims shares.
	claimDeadline = 2 * time.Second
)

// Claim is a buyer's claim of a single code.
type Claim struct {
	Code    Number
	BuyerID string
}

// Store keeps whose the single codes of sales are.
type Store interface {
	// ClaimCodes assigns each code to the first buyer who claims it, and returns the owner of each
	// claim's code, in order. After an error some may be assigned; repeating a claim is safe.
	ClaimCodes(ctx context.Context, goodsID int64, claims []Claim, now time.Time) ([]string, error)
}

// Service checks buyers' codes. It is safe for concurrent use.
type Service struct {
	keys   *Keys
	claims *batcher.Batcher[int64, Claim, string]
}

// NewService returns a service that verifies with keys and claims in store. Concurrent claims of
// one sale share the statements.
func NewService(keys *Keys, store Store) *Service {
	claim := func(ctx context.Context, goodsID int64, claims []Claim) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, claimDeadline)
		defer cancel()
		return store.ClaimCodes(ctx, goodsID, claims, time.Now())
	}
	return &Service{keys, batcher.New(maxBatch, claim)}
}

// Verify checks the code of a buyer by arithmetic alone, at the view's time. It returns nil for a
// sale that asks for no code. Otherwise an empty text is CodeRequired, and a wrong or expired code
// is CodeInvalid.
func (s *Service) Verify(v seckill.View, text string) (Number, error) {
	switch {
	case !v.AccessCode.Required():
		return 0, nil
	case text == "":
		return 0, apierror.New(apierror.CodeRequired, "this sale asks for an access code")
	}
	n, err := s.keys.Verify(text, v.GoodsID, v.AccessCode, v.Now)
	switch {
	case errors.Is(err, errExpired):
		return 0, apierror.New(apierror.CodeInvalid, "this access code has expired")
	case err != nil:
		return 0, apierror.New(apierror.CodeInvalid, "this is no access code of this sale")
	}
	return n, nil
}

// Claim assigns a single code, which Verify returned, to the buyer. It returns CodeUsed if the code
// is another buyer's. It returns Unavailable if MySQL does not answer; the outcome is then unknown,
// and repeating is safe. Sales with other codes or none need no claim.
func (s *Service) Claim(ctx context.Context, v seckill.View, code Number, buyerID string) error {
	if v.AccessCode != seckill.SingleCodes {
		return nil
	}
	owner, err := s.claims.Do(ctx, v.GoodsID, Claim{code, buyerID})
	switch {
	case err != nil:
		return apierror.NewUnavailable("the access code can't be checked", err)
	case owner != buyerID:
		return apierror.New(apierror.CodeUsed, "another buyer has used this access code")
	}
	return nil
}
