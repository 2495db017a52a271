package apikey

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestService_IsUnavailableWithoutItsStore checks that no call answers an internal error while the
// database is down.
func TestService_IsUnavailableWithoutItsStore(t *testing.T) {
	ctx, by := t.Context(), seckill.Actor{ID: "70", Role: seckill.Merchant}
	id, _ := newSecret(time.Now())
	s := &Service{&memory{keys: map[string]Key{}, err: errors.New("the database is down")}}
	_, _, created := s.Create(ctx, by, NewKey{MerchantID: by.ID, Name: "n", Scopes: Scopes()})
	_, listed := s.List(ctx, by, "", "", 10)
	_, revoked := s.Revoke(ctx, by, id)
	for _, err := range []error{created, listed, revoked} {
		require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err), "%v", err)
	}
}
