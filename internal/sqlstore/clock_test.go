package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/webhook"
)

// TestNow_IsTheServersTime opens stores whose sessions have a clock of their own, an hour from this
// host's.
func TestNow_IsTheServersTime(t *testing.T) {
	t.Parallel()
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		for _, off := range []time.Duration{-time.Hour, time.Hour} {
			at := time.Now().Add(off)
			sign := "?"
			if strings.Contains(dsn, sign) {
				sign = "&"
			}
			h := openFixture(t, fmt.Sprintf("%s%stimestamp=%d", dsn, sign, at.Unix()), "")
			first := must.Get(h.Now(t.Context()))(t)
			require.WithinDuration(t, at, first, 30*time.Minute)
			require.Equal(t, time.UTC, first.Location())
			require.False(t, must.Get(h.Now(t.Context()))(t).Before(first))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := openFixture(t, dsn, "").Now(gone)
		require.ErrorIs(t, err, context.Canceled, "an unread clock is no clock")
	})
}

// TestNow_AfterTheHostWasSuspended checks that the server's clock is read again on a host whose
// monotonic clock stood still for an hour. Orders would be written with a payBy that is over.
func TestNow_AfterTheHostWasSuspended(t *testing.T) {
	t.Parallel()
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		h := openFixture(t, dsn, "")
		before := must.Get(h.Now(t.Context()))(t)
		read := *h.clock.last.Load()
		read.server, read.wall = read.server.Add(-time.Hour), read.wall.Add(-time.Hour)
		h.clock.last.Store(&read)
		require.WithinDuration(t, before, must.Get(h.Now(t.Context()))(t), 30*time.Minute)
	})
}

// TestReadClock_AsksAgainAfterASleep has the process sleep for an hour with the first answer.
func TestReadClock_AsksAgainAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := time.Hour
		read := must.Get(readClock(func() (time.Time, error) {
			answered := time.Now()
			time.Sleep(sleep)
			sleep = time.Second
			return answered, nil
		}))(t)
		require.Equal(t, time.Second, time.Since(read.now()))
	})
}

// TestClockSetBack_HidesNoRow sets the server's clock back by an hour. Work from before is due at
// once, and work which waits on purpose still waits.
func (h fixture) TestClockSetBack_HidesNoRow(t *testing.T) {
	ctx, now := t.Context(), today.Add(-time.Hour)
	sale := h.exposed(10, 5)
	must.Get(h.CancelOne(sale.GoodsID, h.writeOrder(sale, 1), today))(t)
	require.Equal(t, sale.GoodsID, must.Get(h.UnreleasedAfter(ctx, 0, now))(t))
	require.Len(t, must.Get(h.UnreleasedMoves(ctx, sale.GoodsID, now, 10))(t), 1)

	h.mustChange(sale.GoodsID, salechange.Change{StockDelta: -4})
	require.Len(t, must.Get(h.OpenCuts(ctx, now, "", 10))(t), 1)

	sn := h.writeOrder(sale, 2)
	must.Get(h.receiveOne(h.payment(sale, "late-"+sn, sn), today.Add(time.Hour)))(t)
	due := must.Get(h.DueRefunds(ctx, today, 10))(t)
	require.Len(t, due, 1, "never tried")
	require.True(t, must.Get(h.ClaimRefund(ctx, due[0], today))(t))
	due = must.Get(h.DueRefunds(ctx, now, 10))(t)
	require.Len(t, due, 1, "tried")
	require.True(t, must.Get(h.ClaimRefund(ctx, due[0], now))(t))
	require.Empty(t, must.Get(h.DueRefunds(ctx, now, 10))(t), "it waits for its next attempt")
	p := due[0].Payment
	require.NoError(t, h.MarkRefunded(ctx, p, now))
	require.NoError(t, h.RecordReversal(ctx, failedRefund(p, "re_1", today), today))
	require.Empty(t, must.Get(h.DueRefunds(ctx, today, 10))(t), "the pause of a failed attempt")
	require.Len(t, must.Get(h.DueRefunds(ctx, now, 10))(t), 1)

	sn = h.writeOrder(sale, 3)
	c := must.Get(h.BeginCheckout(ctx, h.order(sale.GoodsID, sn), today, today.Add(time.Minute)))(t)
	require.Len(t, must.Get(h.DueCheckouts(ctx, now, 10))(t), 1)
	require.True(t, must.Get(h.ClaimCheckout(ctx, c, now.Add(payment.PollPauseMax)))(t))
	require.Empty(t, must.Get(h.DueCheckouts(ctx, now, 10))(t), "it waits for its next question")

	e := h.endpoint("e")
	must.Get(h.ChangeEndpoint(ctx, e.ID, now, func(*webhook.Endpoint) {}))(t)
	h.placeEvents()
	h.claim(e, "of a worker that died", today)
	endpoints := must.Get(h.DueEndpoints(ctx, now, true, 10))(t)
	require.Len(t, endpoints, 1)
	h.claim(endpoints[0], "l", now)
	require.Empty(t, must.Get(h.DueEndpoints(ctx, now, true, 10))(t), "somebody serves it")
	e = h.claim(must.Get(h.FindEndpoint(ctx, e.ID))(t), "again", today)
	e.DueAt = today.Add(time.Second)
	require.NoError(t, h.SaveProgress(ctx, e, nil))
	require.NoError(t, h.ReleaseEndpoint(ctx, e.ID, e.Lease))
	early := must.Get(h.DueEndpoints(ctx, today, true, 10))(t)
	require.Empty(t, early, "it waits for its next attempt")
	require.Len(t, must.Get(h.DueEndpoints(ctx, now, true, 10))(t), 1)
}
