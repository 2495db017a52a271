package redisstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
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

// TestRetire_WaitsForOrdersInFlight checks that nothing is removed of a sale with a pending order
// or with an outbox entry alone.
func (s fixture) TestRetire_WaitsForOrdersInFlight(t *testing.T) {
	sale := onSale(2, 1)
	s.load(sale)
	retires := func() bool { return must.Get(s.Retire(t.Context(), sale))(t) }
	first := must.Get(s.reserveIn(1, reservationOf(1, 7, 1)))(t)
	require.NoError(t, s.Confirmed(t.Context(), goods, first.OutboxID))
	require.False(t, retires(), "an order is pending")
	second := must.Get(s.reserveIn(1, reservationOf(2, 8, 1)))(t)
	must.Get(s.Settle(t.Context(), goods, []string{"sn1", "sn2"}))(t)
	require.False(t, retires(), "an entry is in the outbox")
	s.requireUnits(0, 0, 2)
	require.NoError(t, s.Confirmed(t.Context(), goods, second.OutboxID))
	require.True(t, retires())
}
