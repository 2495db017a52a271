package redisstore

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func TestReserve_TakesUnitsAndRecordsThem(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 5))
		r := issuePath(t, s, 1, 7, 3)
		require.Equal(t, []reservation.Verdict{{Code: reservation.Taken, OrderSn: "sn1"}},
			reserve(t, s, r))

		v := view(t, s)
		require.EqualValues(t, 7, v.Available)
		require.EqualValues(t, 3, v.Pending)
		require.EqualValues(t, 1, v.Outbox)
		line, pending, err := s.Pending(t.Context(), goods, "sn1")
		require.NoError(t, err)
		require.True(t, pending)
		require.Equal(t, r.OrderLine, line)

		entries := must.Get(s.Unconfirmed(t.Context(), goods, 0, 10))(t)
		require.Len(t, entries, 1)
		require.Equal(t, []reservation.OrderLine{r.OrderLine},
			must.Get(order.Decode(order.EncodeOrders(goods, entries[0].Entries)))(t).Orders)
		require.NoError(t, s.Confirmed(t.Context(), goods, entries[0].ID))
		require.Zero(t, view(t, s).Outbox)
	})
}

func TestReserve_JudgesEachReservationAlone(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(6, 3))
		first := issuePath(t, s, 1, 7, 2)
		again := first
		again.OrderSn = "another"
		more := issuePath(t, s, 2, 7, 2)
		stolen := issuePath(t, s, 3, 8, 1)
		stolen.BuyerID = 9
		verdicts := reserve(t, s, first, again, more, stolen, reservationOf(99, 7, 1),
			issuePath(t, s, 4, 8, 3), issuePath(t, s, 5, 9, 3), issuePath(t, s, 6, 9, 1))
		require.Equal(t, []reservation.Verdict{
			{Code: reservation.Taken, OrderSn: "sn1"},
			{Code: reservation.Repeated, OrderSn: "sn1"},
			{Code: reservation.OverLimit, OrderSns: []string{"sn1"}},
			{Code: reservation.WrongPath},
			{Code: reservation.WrongPath},
			{Code: reservation.Taken, OrderSn: "sn4"},
			{Code: reservation.TooFew, Available: 1},
			{Code: reservation.Taken, OrderSn: "sn6"},
		}, verdicts)
		require.Zero(t, view(t, s).Available)
		require.ElementsMatch(t, []string{"sn1", "sn4", "sn6"}, pendingSns(t, s))
		require.EqualValues(t, 1, view(t, s).Outbox, "a group is one entry")
	})
}

func TestReserve_UsedPathReturnsItsOrderAfterTheSale(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		snap := onSale(1, 1)
		load(t, s, snap)
		r := issuePath(t, s, 1, 7, 1)
		reserve(t, s, r)
		snap.Status = seckill.Closed
		require.NoError(t, s.UpdateSale(t.Context(), snap.Sale))
		r.OrderSn, r.Quantity = "another", 5
		require.Equal(t, []reservation.Verdict{{Code: reservation.Repeated, OrderSn: "sn1"}},
			reserve(t, s, r))
		late := reservationOf(2, 8, 1)
		require.Equal(t, reservation.WrongPath, reserve(t, s, late)[0].Code)
	})
}

func TestReserve_UsesRedisClock(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		snap := onSale(5, 1)
		load(t, s, snap)
		r := issuePath(t, s, 1, 7, 1)
		snap.StartAt = time.Now().Add(time.Minute)
		require.NoError(t, s.UpdateSale(t.Context(), snap.Sale))
		require.Equal(t, reservation.TooEarly, reserve(t, s, r)[0].Code)
		_, err := s.IssuePaths(t.Context(), goods, 1, time.Minute,
			[]reservation.PathGrant{{Path: path(2), BuyerID: 7}})
		require.Equal(t, seckill.NotStarted, seckill.ReasonOf(err))
		snap.StartAt, snap.EndAt = time.Now().Add(-time.Hour), time.Now().Add(-time.Millisecond)
		require.NoError(t, s.UpdateSale(t.Context(), snap.Sale))
		require.Equal(t, reservation.TooLate, reserve(t, s, r)[0].Code)
		require.EqualValues(t, 5, view(t, s).Available)
	})
}

func TestReserve_RejectsInvalidQuantities(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(5, 5))
		for i, q := range []int64{0, -1} {
			require.Equal(t, reservation.Malformed, reserve(t, s, issuePath(t, s, i, 7, q))[0].Code)
		}
		require.EqualValues(t, 5, view(t, s).Available)
	})
}

func TestReserve_ShutGateTakesNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		gate := func(epoch int64) seckill.GateError {
			_, err := s.Reserve(t.Context(), goods, epoch,
				[]reservation.Reservation{reservationOf(1, 7, 1)})
			g, ok := errors.AsType[*seckill.GateError](err)
			require.True(t, ok, "%v", err)
			return *g
		}
		require.Equal(t, seckill.GateError{State: seckill.GateMissing}, gate(1))
		load(t, s, onSale(5, 1))
		issuePath(t, s, 1, 7, 1)
		require.Equal(t, seckill.GateError{State: seckill.GateEpoch, Epoch: 1}, gate(2))
		require.NoError(t, s.Shut(t.Context(), goods, 1))
		require.Equal(t, seckill.GateError{State: seckill.GateShut, Epoch: 1}, gate(1))
		require.EqualValues(t, 5, view(t, s).Available)
	})
}

func TestReserve_LeaseEndsWithItsMaster(t *testing.T) {
	server := servers.Redis(t, "appendfsync always")
	s := open(t, server.Addr(), "")
	load(t, s, onSale(5, 1))
	r := issuePath(t, s, 1, 7, 1)
	require.NoError(t, server.Restart(t.Context()))
	require.Eventually(t, func() bool { return s.Ping(t.Context()) == nil }, time.Minute,
		10*time.Millisecond)
	_, err := s.Reserve(t.Context(), goods, 1, []reservation.Reservation{r})
	gate, ok := errors.AsType[*seckill.GateError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, seckill.GateLease, gate.State)
	require.Equal(t, seckill.GateLease, view(t, s).Gate)

	snap := onSale(5, 1)
	snap.Epoch = 2
	load(t, s, snap)
	must.Get(s.IssuePaths(t.Context(), goods, 2, time.Minute,
		[]reservation.PathGrant{{Path: path(2), BuyerID: 8}}))(t)
	g := must.Get(s.Reserve(t.Context(), goods, 2,
		[]reservation.Reservation{r, reservationOf(2, 8, 1)}))(t)
	require.Equal(t, reservation.WrongPath, g.Verdicts[0].Code, "a path ends with its epoch")
	require.Equal(t, reservation.Taken, g.Verdicts[1].Code)
}

func TestReserve_ConcurrentCallsNeverOversell(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		const units, buyers = 50, 200
		load(t, s, onSale(units, 1))
		taken := make(chan string, buyers)
		asked := make([]reservation.Reservation, buyers)
		for i := range asked {
			asked[i] = issuePath(t, s, i, int64(i+1), 1)
		}
		var wg sync.WaitGroup
		for _, r := range asked {
			wg.Go(func() {
				if v := reserve(t, s, r); v[0].Code == reservation.Taken {
					taken <- v[0].OrderSn
				}
			})
		}
		wg.Wait()
		require.Len(t, taken, units)
		require.Zero(t, view(t, s).Available)
		require.Len(t, pendingSns(t, s), units)
	})
}

func TestReserve_OldBacklogShutsTheGate(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		s.opts.MaxBacklogMillis = 20
		load(t, s, onSale(5, 1))
		reserve(t, s, issuePath(t, s, 1, 7, 1))
		r := issuePath(t, s, 2, 8, 1)
		var gate *seckill.GateError
		require.Eventually(t, func() bool {
			_, err := s.Reserve(t.Context(), goods, 1,
				[]reservation.Reservation{reservationOf(9, 9, 1)})
			return errors.As(err, &gate)
		}, time.Minute, time.Millisecond)
		require.Equal(t, seckill.GateBacklog, gate.State)
		must.Get(s.Settle(t.Context(), goods, []string{"sn1"}))(t)
		require.Equal(t, reservation.Taken, reserve(t, s, r)[0].Code)
	})
}
