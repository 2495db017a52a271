package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// reserveBlocks reserves one unit for each of n buyers in one call, and returns the lines.
func (s fixture) reserveBlocks(n int) (lines []reservation.OrderLine, sns []string) {
	s.t.Helper()
	s.load(onSale(int64(n), 1))
	rs := make([]reservation.Reservation, n)
	for i := range rs {
		rs[i] = reservationOf(i, int64(100+i), 1)
		rs[i].Name = `{"orderSn":"sn1",` // found in no name
		lines, sns = append(lines, rs[i].OrderLine), append(sns, rs[i].OrderSn)
	}
	for i, v := range s.reserve(rs...) {
		require.Equal(s.t, reservation.Verdict{Code: reservation.Taken, OrderSn: sns[i]}, v)
	}
	s.requireUnits(0, int64(n), 0)
	return lines, sns
}

// blocks is the number of fields of the hash of blocks.
func (s fixture) blocks() int {
	s.t.Helper()
	return int(must.Get(s.client.HLen(s.t.Context(), keysOf(goods).blocks()).Result())(s.t))
}

// TestReserve_OrdersShareBlocks checks that pending and the outbox have all orders of a call, in
// blocks. A block is there as long as one of its orders is pending.
func (s fixture) TestReserve_OrdersShareBlocks(t *testing.T) {
	lines, sns := s.reserveBlocks(2*blockSize + 2)
	require.Equal(t, 3, s.blocks())
	entries := must.Get(s.Unconfirmed(t.Context(), goods, 0, 10))(t)
	require.Len(t, entries, 1)
	require.Equal(t, lines,
		must.Get(message.Decode(message.EncodeOrders(goods, entries[0].Entries)))(t).Orders)

	found := must.Get(s.PendingAmong(t.Context(), map[int64][]string{goods: append(sns, "sn")}))(t)
	require.Len(t, found, len(lines))
	for _, l := range lines {
		require.Equal(t, l, found[l.OrderSn])
	}
	listed := make(map[string]order.Pending)
	for page, err := range s.PendingPages(t.Context(), goods, blockSize) {
		require.NoError(t, err)
		for _, p := range page {
			listed[p.OrderSn] = p
		}
	}
	require.Len(t, listed, len(lines))
	for _, l := range lines {
		p := listed[l.OrderSn]
		require.Equal(t, l, p.OrderLine)
		require.JSONEq(t, string(message.EncodeLine(l)), string(p.Entry))
		require.WithinDuration(t, time.Now(), p.At, time.Minute)
	}

	// One order of the first block stays. One of the first and one of the second are released.
	must.Get(s.Settle(t.Context(), goods, sns[1:blockSize-1]))(t)
	require.Equal(t, []order.MoveResult{order.MoveApplied, order.MoveApplied}, s.release(
		cancelOf(sns[blockSize-1], 100+blockSize-1, 1), cancelOf(sns[blockSize], 100+blockSize, 1)))
	must.Get(s.Settle(t.Context(), goods, sns[blockSize:2*blockSize]))(t)
	require.Equal(t, 2+1, s.blocks(), "the first with its count, and the third")
	require.ElementsMatch(t, []string{sns[0], sns[2*blockSize], sns[2*blockSize+1]}, s.pendingSns())
	for range 2 {
		must.Get(s.Settle(t.Context(), goods, sns))(t)
		require.Zero(t, s.blocks())
		s.requireUnits(2, 0, int64(len(sns)-2))
	}
}

// TestPendingPages_OmitsSettledOrdersOfABlock settles orders as the release before blocks does.
func (s fixture) TestPendingPages_OmitsSettledOrdersOfABlock(t *testing.T) {
	_, sns := s.reserveBlocks(blockSize + 2)
	require.NoError(t, s.client.HDel(t.Context(), keysOf(goods).pending(), sns[1:]...).Err())
	require.Equal(t, sns[:1], s.pendingSns())
	require.NoError(t, s.client.HDel(t.Context(), keysOf(goods).pending(), sns[:1]...).Err())
	require.Empty(t, s.pendingSns())
}

// TestPendingPages_LostBlockIsAnError checks that a rebuild does not omit an order.
func (s fixture) TestPendingPages_LostBlockIsAnError(t *testing.T) {
	_, sns := s.reserveBlocks(2)
	require.NoError(t, s.client.Unlink(t.Context(), keysOf(goods).blocks()).Err())
	var failed error
	for _, err := range s.PendingPages(t.Context(), goods, 1000) {
		failed = errors.Join(failed, err)
	}
	require.ErrorContains(t, failed, sns[1])
}

// TestPendingAmong_LostBlockIsAnError checks that an order is not taken for one that is settled.
func (s fixture) TestPendingAmong_LostBlockIsAnError(t *testing.T) {
	_, sns := s.reserveBlocks(2)
	require.NoError(t, s.client.Unlink(t.Context(), keysOf(goods).blocks()).Err())
	_, _, err := s.Pending(t.Context(), goods, sns[1])
	require.ErrorContains(t, err, fmt.Sprint(sns[1:]))
}

// TestLoad_DropsBlocks checks that an epoch begins without the blocks of the one before.
func (s fixture) TestLoad_DropsBlocks(t *testing.T) {
	s.reserveBlocks(2)
	s.load(onSaleIn(2, 2, 1))
	require.Zero(t, s.blocks())
	require.Empty(t, s.pendingSns())
}
