package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// openFor opens the gate of an epoch from one moment to another, relative to the master's time.
func (s fixture) openFor(epoch int64, from, until time.Duration) bool {
	s.t.Helper()
	now := must.Get(s.Lease(s.t.Context(), goods))(s.t).Now
	return must.Get(s.OpenGate(s.t.Context(), goods, epoch,
		rebuild.OpenTime{From: now.Add(from), Until: now.Add(until)}))(s.t)
}

// TestOpenGate_OpensForATime checks that a load leaves the gate shut where Redis can fail over. An
// opened gate is open from one moment to another. Outside that time no script takes or returns
// units.
func (s fixture) TestOpenGate_OpensForATime(t *testing.T) {
	s.opts.FailsOver = true
	s.load(onSale(3, 2))
	require.Equal(t, seckill.GateShut, s.view().Gate)
	refusesAll := func(state seckill.GateState) {
		t.Helper()
		_, err := s.reserveIn(1, reservationOf(2, 8, 1))
		require.Equal(t, state, gateOf(t, err).State)
		_, err = s.Adopt(t.Context(), goods, 1, 0,
			[]reservation.OrderLine{{OrderSn: "late", BuyerID: "9", Quantity: 1}})
		require.Equal(t, state, gateOf(t, err).State)
		require.Equal(t, []order.MoveResult{order.MoveDeferred}, s.release(cancelOf("sn1", 7, 1)))
	}
	refusesAll(seckill.GateShut)
	require.False(t, s.openFor(2, 0, time.Hour), "Redis has another epoch")
	own := s.opts.Lease
	s.opts.Lease = "another"
	require.False(t, s.openFor(1, 0, time.Hour), "another master loaded the sale")
	s.opts.Lease = own

	require.True(t, s.openFor(1, -time.Hour, 0))
	refusesAll(seckill.GateExpired)
	next := must.Get(s.loadPages(onSaleIn(2, 3, 2), pagesOf()))(t)
	require.False(t, next, "no rebuild has shut this gate and waited for its orders")
	require.True(t, s.openFor(1, -time.Hour, 2*time.Hour), "longer than the next epoch")
	until := s.client.HGet(t.Context(), keysOf(goods).sale(), "until").Val()
	require.Equal(t, until, fmt.Sprint(s.view().OpenUntil.UnixMilli()))
	require.Equal(t, reservation.Taken, s.reserve(reservationOf(1, 7, 1))[0].Code)

	require.True(t, s.openFor(1, -2*time.Hour, -time.Hour), "a worker that slept")
	require.Equal(t, seckill.GateOpen, s.view().Gate, "the newer renewal counts")

	must.Get(s.Shut(t.Context(), goods, 1))(t)
	require.False(t, s.openFor(1, 0, time.Hour), "a renewal opens no gate that a rebuild shut")
	refusesAll(seckill.GateShut)
	snap := onSaleIn(2, 3, 2)
	require.True(t, must.Get(s.loadPages(snap, pagesOf()))(t))
	require.Equal(t, seckill.GateShut, s.view().Gate)
	require.True(t, s.openFor(2, 0, time.Hour))
	_, err := s.Shut(t.Context(), goods, 1)
	require.ErrorIs(t, err, rebuild.ErrFenced, "a rebuild that slept")
	require.Equal(t, seckill.GateOpen, s.view().Gate)
}

// TestOpenGate_ClockSetBackEndsIt checks that a gate is not open for an hour longer because its
// master's clock was set back an hour. The next renewal opens it again.
func (s fixture) TestOpenGate_ClockSetBackEndsIt(t *testing.T) {
	s.opts.FailsOver = true
	s.load(onSale(3, 2))
	require.True(t, s.openFor(1, time.Hour, 2*time.Hour), "opened an hour ahead of the clock now")
	_, err := s.reserveIn(1, reservationOf(1, 7, 1))
	require.Equal(t, seckill.GateExpired, gateOf(t, err).State)
	late := []reservation.OrderLine{reservationOf(2, 7, 1).OrderLine}
	for i, take := range []func(){
		func() {
			require.Equal(t, reservation.Taken, s.reserve(reservationOf(1, 7, 1))[0].Code)
		},
		func() { must.Get(s.Adopt(t.Context(), goods, 1, 2, late))(t) },
	} {
		require.True(t, s.openFor(1, -time.Minute, time.Duration(i+1)*time.Hour))
		take()
		from := must.Get(s.client.HGet(t.Context(), keysOf(goods).sale(), "from").Int64())(t)
		now := must.Get(s.Lease(t.Context(), goods))(t).Now
		require.Greater(t, from, now.Add(-time.Minute).UnixMilli(),
			"each order that takes units raises the time")
	}
}

// TestRenewGates_RenewsTheSalesOfEachLease checks that every master renews the sales that MySQL has
// open on its lease, and that an error of one is returned.
func (s fixture) TestRenewGates_RenewsTheSalesOfEachLease(t *testing.T) {
	s.opts.FailsOver = true
	s.load(onSale(3, 2))
	lease := must.Get(s.Lease(t.Context(), goods))(t).ID
	require.Equal(t, lease, s.view().Lease)
	asked := make(map[string]bool)
	times := func(
		_ context.Context, l rebuild.Lease,
	) ([]rebuild.OpenSale, rebuild.OpenTime, error) {
		asked[l.ID] = true
		if l.ID != lease {
			return nil, rebuild.OpenTime{}, nil
		}
		sales := []rebuild.OpenSale{{GoodsID: goods, Epoch: 1}}
		return sales, rebuild.OpenTime{From: l.Now, Until: l.Now.Add(time.Hour)}, nil
	}
	require.NoError(t, s.RenewGates(t.Context(), times))
	require.Equal(t, seckill.GateOpen, s.view().Gate)
	masters, _, err := eachMaster(t.Context(), s.client, s.checkMaster)
	require.NoError(t, err)
	require.Len(t, asked, masters)
	errDown := errors.New("MySQL is down")
	require.ErrorIs(t, s.RenewGates(t.Context(), func(
		context.Context, rebuild.Lease,
	) ([]rebuild.OpenSale, rebuild.OpenTime, error) {
		return nil, rebuild.OpenTime{}, errDown
	}), errDown)
}

// TestLease_ErrorOfACallIsItsOnly checks that a Redis that is away is no malformed answer too.
func TestLease_ErrorOfACallIsItsOnly(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer client.Close()
	_, err := New(client, Options{}).Lease(t.Context(), 1)
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.NotContains(t, err.Error(), "has no field")
}
