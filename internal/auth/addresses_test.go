package auth

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAddresses_OpenForTheirOrderOnly tries another order, another buyer and a phone number.
func TestAddresses_OpenForTheirOrderOnly(t *testing.T) {
	keys, err := NewPhones(DerivedPhoneKey([]byte("secret")))
	require.NoError(t, err)
	a := Addresses{keys}
	sealed := a.Seal("ann", "1EEX", "a street")
	require.NotContains(t, sealed, "street")
	text, err := a.Open("ann", "1EEX", sealed)
	require.NoError(t, err)
	require.Equal(t, "a street", text)
	for _, of := range [][2]string{{"bob", "1EEX"}, {"ann", "1EEY"}, {"X ann", "1EE"}, {"", ""}} {
		_, err := a.Open(of[0], of[1], sealed)
		require.ErrorIs(t, err, errSealed, "%v", of)
	}
	_, _, err = keys.Open("ann", sealed)
	require.ErrorIs(t, err, errSealed)
	_, err = a.Open("ann", "1EEX", keys.Seal("ann", "+49 30 1", ""))
	require.ErrorIs(t, err, errSealed)
}
