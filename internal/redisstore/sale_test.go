package redisstore

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
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

// TestView_HasEveryField checks a sale before and after its first order.
func (s fixture) TestView_HasEveryField(t *testing.T) {
	sale := onSale(5, 3)
	sale.Admission, sale.AccessCode = seckill.ByRate, seckill.NoCodes
	s.load(sale)
	sale.Stock = 0
	want := seckill.View{Sale: sale, Gate: seckill.GateOpen, Available: 5}
	for range 2 {
		v := s.view()
		want.Lease, want.Now, want.PendingSince = v.Lease, v.Now, v.PendingSince
		require.Equal(t, want, v)
		require.NotEmpty(t, v.Lease)
		taken := must.Get(s.reserveIn(1, reservationOf(1, 7, 2)))(t)
		want.Available, want.Pending, want.Outbox = 3, 2, 1
		want.OldestAt = streamTime(taken.OutboxID)
	}
}

// TestView_WithoutINFOIsAnError checks a user of Redis under whom no epoch could be loaded. A sale
// is not reported as one that Redis lacks then.
func TestView_WithoutINFOIsAnError(t *testing.T) {
	server := open(t, env.Redis(t).Addr(), "")
	require.NoError(t, server.client.FlushAll(t.Context()).Err())
	require.NoError(t, server.client.Do(t.Context(), "ACL", "SETUSER", "limited", "on", "nopass",
		"~*", "+@all", "-info").Err())
	client := redis.NewClient(&redis.Options{
		Addr: env.Redis(t).Addr(), Username: "limited",
		Password: "any",
	})
	t.Cleanup(func() { _ = client.Close() })
	_, err := New(client, Options{}).View(t.Context(), goods)
	require.ErrorContains(t, err, "can't run this command")
	_, err = New(client, Options{Lease: "a token"}).View(t.Context(), goods)
	require.ErrorIs(t, err, seckill.ErrNotLoaded)
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
