package redisstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestView_MerchantsOfBothReleases checks that a card contains a merchant's number as a number, so
// that programs of the release before ids became text read it. Both forms are read.
func (s fixture) TestView_MerchantsOfBothReleases(t *testing.T) {
	for epoch, c := range []struct{ id, inCard string }{
		{"7", `7`},
		{"9223372036854775807", `9223372036854775807`},
		{"007", `"007"`},
		{"-7", `"-7"`},
		{"9223372036854775808", `"9223372036854775808"`},
		{"7e1", `"7e1"`},
		{`auth0|"5f"`, `"auth0|\"5f\""`},
	} {
		sale := onSaleIn(int64(epoch)+1, 3, 2)
		sale.MerchantID = c.id
		s.load(sale)
		require.Contains(t, s.client.HGet(t.Context(), keysOf(goods).sale(), "card").Val(),
			`{"merchantId":`+c.inCard+`,`)
		require.Equal(t, c.id, s.view().MerchantID)
	}
	require.NoError(t, s.client.HSet(t.Context(), keysOf(goods).sale(), "card",
		`{"merchantId":"7","title":"as text"}`).Err())
	require.Equal(t, "7", s.view().MerchantID, "a card of a release that wrote all ids as text")
}
