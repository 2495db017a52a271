package auth

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestWebhookSecrets_AreBoundToTheirEndpoint checks that a sealed secret opens for its endpoint
// only, and not as a phone number.
func TestWebhookSecrets_AreBoundToTheirEndpoint(t *testing.T) {
	keys := must.Get(NewPhones(DerivedPhoneKey([]byte("a secret"))))(t)
	w := WebhookSecrets{keys}
	sealed := w.Seal("e1", "whsec_c2VjcmV0")
	require.NotContains(t, sealed, "c2VjcmV0")
	require.Equal(t, "whsec_c2VjcmV0", must.Get(w.Open("e1", sealed))(t))
	for _, kept := range []string{
		sealed + "A", "", "whsec_c2VjcmV0", keys.Seal("7", "+49301234", ""),
	} {
		_, err := w.Open("e1", kept)
		require.ErrorIs(t, err, errSealed, kept)
	}
	_, err := w.Open("e2", sealed)
	require.ErrorIs(t, err, errSealed)
	_, _, err = keys.Open("7", sealed)
	require.ErrorIs(t, err, errSealed)
}
