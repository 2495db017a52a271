package apikey

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

// TestService_IsUnavailableWithoutItsStore checks that no call answers an internal error while the
// database is down.
func TestService_IsUnavailableWithoutItsStore(t *testing.T) {
	ctx, by := t.Context(), seckill.Actor{ID: "70", Role: seckill.Merchant}
	id, _ := newText(time.Now())
	s := &Service{&memory{keys: map[string]Key{}, err: errors.New("the database is down")}}
	_, _, created := s.Create(ctx, by, NewKey{MerchantID: by.ID, Name: "n", Scopes: Scopes()})
	_, listed := s.List(ctx, by, "", "", 10)
	_, revoked := s.Revoke(ctx, by, id)
	for _, err := range []error{created, listed, revoked} {
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "%v", err)
	}
}

// lostAnswer stores keys, and loses the answer to the commit.
type lostAnswer struct{ *memory }

func (s lostAnswer) AddAPIKey(ctx context.Context, k Key) error {
	return errors.Join(errors.New("the connection ended"), s.memory.AddAPIKey(ctx, k))
}

// TestCreate_ReportsThatTheKeyMayExist checks that a caller whose key was stored and whose answer
// has no key learns that the list may show it.
func TestCreate_ReportsThatTheKeyMayExist(t *testing.T) {
	ctx, by := t.Context(), seckill.Actor{ID: "70", Role: seckill.Merchant}
	s := &Service{lostAnswer{&memory{keys: map[string]Key{}}}}
	_, _, err := s.Create(ctx, by, NewKey{MerchantID: by.ID, Name: "n", Scopes: Scopes()})
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "%v", err)
	require.ErrorContains(t, err, "revoke it")
}
