package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestReserve_TakesUnitsAndRecordsThem checks that a reservation takes its units and appears in
// pending and in the outbox. A confirm removes the outbox entry.
func (s fixture) TestReserve_TakesUnitsAndRecordsThem(t *testing.T) {
	s.load(onSale(10, 5))
	r := reservationOf(1, 7, 3)
	require.Equal(t, []reservation.Verdict{{Code: reservation.Taken, OrderSn: "sn1"}}, s.reserve(r))

	s.requireUnits(7, 3, 0)
	require.EqualValues(t, 1, s.view().Outbox)
	line, pending, err := s.Pending(t.Context(), goods, "sn1")
	require.NoError(t, err)
	require.True(t, pending)
	require.Equal(t, r.OrderLine, line)

	entries := must.Get(s.Unconfirmed(t.Context(), goods, 0, 10))(t)
	require.Len(t, entries, 1)
	require.Equal(t, []reservation.OrderLine{r.OrderLine},
		must.Get(message.Decode(message.EncodeOrders(goods, entries[0].Entries)))(t).Orders)
	require.NoError(t, s.Confirmed(t.Context(), goods, entries[0].ID))
	require.Zero(t, s.view().Outbox)
}

// TestPendingAmong_MalformedLineIsAnError checks that a malformed line is an error, and that the
// other lines are still returned.
func (s fixture) TestPendingAmong_MalformedLineIsAnError(t *testing.T) {
	s.load(onSale(10, 5))
	r := reservationOf(1, 7, 3)
	s.reserve(r)
	require.NoError(t, s.client.HSet(t.Context(), keysOf(goods).pending(), "sn2", "x").Err())
	lines, err := s.PendingAmong(t.Context(), map[int64][]string{goods: {"sn2", "sn1", "sn3"}})
	require.ErrorContains(t, err, "a pending order in redis")
	require.Equal(t, map[string]reservation.OrderLine{"sn1": r.OrderLine}, lines)
}

// TestReserve_JudgesEachReservationAlone checks that each reservation of a batch gets its own
// verdict. A refusal does not affect the others.
func (s fixture) TestReserve_JudgesEachReservationAlone(t *testing.T) {
	s.load(onSale(6, 3))
	expired, ahead := reservationOf(3, 9, 1), reservationOf(7, 9, 1)
	expired.PathEnd = time.Now()
	ahead.PathEnd = time.Now().Add(time.Hour) // as after Redis' clock was set back
	verdicts := s.reserve(reservationOf(1, 7, 2), reservationOf(1, 7, 5), reservationOf(2, 7, 2),
		expired, ahead, reservationOf(4, 8, 3), reservationOf(5, 9, 3), reservationOf(6, 9, 1),
		reservationOf(8, 7, 0), reservationOf(9, 7, -1))
	require.Equal(t, []reservation.Verdict{
		{Code: reservation.Taken, OrderSn: "sn1"},
		{Code: reservation.Repeated, OrderSn: "sn1"},
		{Code: reservation.OverLimit, OrderSns: []string{"sn1"}},
		{Code: reservation.WrongPath},
		{Code: reservation.WrongPath},
		{Code: reservation.Taken, OrderSn: "sn4"},
		{Code: reservation.TooFew, Available: 1},
		{Code: reservation.Taken, OrderSn: "sn6"},
		{Code: reservation.Malformed},
		{Code: reservation.Malformed},
	}, verdicts)
	require.Zero(t, s.view().Available)
	require.ElementsMatch(t, []string{"sn1", "sn4", "sn6"}, s.pendingSns())
	require.EqualValues(t, 1, s.view().Outbox, "a batch is one outbox entry")
}

// TestReserve_UsedPathReturnsItsOrderAfterTheSale checks that a used path returns its order even
// after the buyer cancelled it and the sale closed.
func (s fixture) TestReserve_UsedPathReturnsItsOrderAfterTheSale(t *testing.T) {
	sale := onSale(1, 1)
	s.load(sale)
	r := reservationOf(1, 7, 1)
	s.reserve(r)
	require.Equal(t, []order.MoveResult{order.MoveApplied}, s.release(cancelOf("sn1", 7, 1)))
	sale.Status = seckill.Closed
	require.NoError(t, s.UpdateSale(t.Context(), sale))
	r.Quantity, r.PathEnd = 5, time.Now().Add(-time.Hour)
	require.Equal(t, []reservation.Verdict{{Code: reservation.Repeated, OrderSn: "sn1"}},
		s.reserve(r))
	require.Equal(t, reservation.TooLate, s.reserve(reservationOf(2, 8, 1))[0].Code)
}

// numberOf returns an order number whose path was issued an age ago.
func numberOf(age time.Duration, buyer int64, keys *ordersn.Keys) string {
	return keys.Issue(goods, fmt.Sprint(buyer), time.Now().Add(-age)).String()
}

// TestRelease_ForgetsNumbersByTheirPathEnd checks that a number that ended is forgotten once its
// own path has expired for long by Redis' clock. When it ended does not matter, nor who loaded it.
func (s fixture) TestRelease_ForgetsNumbersByTheirPathEnd(t *testing.T) {
	keys := ordersn.NewKeys([]byte("secret"))
	loaded, live := numberOf(2*time.Hour, 7, keys), numberOf(-time.Hour, 7, keys)
	s.load(onSale(9, 9),
		order.Held{BuyerID: "7", OrderSn: loaded}, order.Held{BuyerID: "7", OrderSn: live})
	old := numberOf(ordersn.PathTTL+5*time.Minute+5*time.Second, 7, keys)
	for _, sn := range []string{
		old, numberOf(-time.Hour, 7, keys), numberOf(4*time.Minute, 7, keys),
	} {
		r := reservationOf(1, 7, 1)
		r.OrderSn = sn
		require.Equal(t, reservation.Taken, s.reserve(r)[0].Code)
		require.Equal(t, []order.MoveResult{order.MoveApplied}, s.release(cancelOf(sn, 7, 1)))
		holding := s.client.HGet(t.Context(), keysOf(goods).buyers(), "7").Val()
		require.Equal(t, sn != old, strings.Contains(holding, sn))
		require.NotContains(t, holding, loaded)
		require.Contains(t, holding, live)
	}
}

// TestRelease_ForgetsABuyerWithoutOrders checks a buyer whose only order ended after its path.
func (s fixture) TestRelease_ForgetsABuyerWithoutOrders(t *testing.T) {
	s.load(onSale(9, 9))
	keys := ordersn.NewKeys([]byte("secret"))
	for range 2 {
		r := reservationOf(1, 7, 1)
		r.OrderSn = numberOf(time.Hour, 7, keys)
		require.Equal(t, reservation.Taken, s.reserve(r)[0].Code)
		require.Equal(t, []order.MoveResult{order.MoveApplied},
			s.release(cancelOf(r.OrderSn, 7, 1)))
		require.Zero(t, s.client.Exists(t.Context(), keysOf(goods).buyers()).Val())
	}
}

// TestReserve_BoundsTheHolding checks that a buyer who bought and cancelled hundreds of times is
// refused, and only until the paths of these orders have expired.
func (s fixture) TestReserve_BoundsTheHolding(t *testing.T) {
	keys := ordersn.NewKeys([]byte("secret"))
	var ended []order.Held
	for buyer, age := range map[int64]time.Duration{7: -time.Hour, 8: time.Hour} {
		for range 300 {
			sn := numberOf(age, buyer, keys)
			ended = append(ended, order.Held{BuyerID: fmt.Sprint(buyer), OrderSn: sn})
		}
	}
	s.load(onSale(9, 9), ended...)
	verdicts := s.reserve(reservationOf(1, 7, 1), reservationOf(2, 8, 1))
	require.Equal(t, reservation.OverLimit, verdicts[0].Code)
	require.Empty(t, verdicts[0].OrderSns)
	require.Equal(t, reservation.Taken, verdicts[1].Code)
	require.Equal(t, "1 sn2:1",
		s.client.HGet(t.Context(), keysOf(goods).buyers(), "8").Val())
}

// TestReserve_UsesRedisClock checks that a sale starts and ends by Redis' clock.
func (s fixture) TestReserve_UsesRedisClock(t *testing.T) {
	sale := onSale(5, 1)
	s.load(sale)
	r := reservationOf(1, 7, 1)
	sale.StartAt = time.Now().Add(time.Minute)
	require.NoError(t, s.UpdateSale(t.Context(), sale))
	require.Equal(t, reservation.TooEarly, s.reserve(r)[0].Code)
	sale.StartAt, sale.EndAt = time.Now().Add(-time.Hour), time.Now().Add(-time.Millisecond)
	require.NoError(t, s.UpdateSale(t.Context(), sale))
	require.Equal(t, reservation.TooLate, s.reserve(r)[0].Code)
	require.EqualValues(t, 5, s.view().Available)
}

// TestReserve_ShutGateTakesNothing checks that Redis refuses reservations of a missing sale, of
// another epoch and behind a shut gate.
func (s fixture) TestReserve_ShutGateTakesNothing(t *testing.T) {
	gate := func(epoch int64) seckill.GateError {
		_, err := s.reserveIn(epoch, reservationOf(1, 7, 1))
		return *gateOf(t, err)
	}
	require.Equal(t, seckill.GateError{State: seckill.GateMissing}, gate(1))
	s.load(onSale(5, 1))
	require.Equal(t, seckill.GateError{State: seckill.GateEpoch, Epoch: 1}, gate(2))
	must.Get(s.Shut(t.Context(), goods, 1))(t)
	require.Equal(t, seckill.GateError{State: seckill.GateShut, Epoch: 1}, gate(1))
	require.EqualValues(t, 5, s.view().Available)
}

// TestSoldOut_RefusesWhatReserveRefuses checks that a buyer is refused only where no unit is left,
// and where Reserve has the same answer. A buyer with an order may repeat it.
func (s fixture) TestSoldOut_RefusesWhatReserveRefuses(t *testing.T) {
	listOf := func(rs ...reservation.Reservation) []reservation.Reservation { return rs }
	of := func(n int, buyer int64, change func(*reservation.Reservation)) reservation.Reservation {
		r := reservationOf(n, buyer, 1)
		if change != nil {
			change(&r)
		}
		return r
	}
	holder, first, second := of(1, 7, nil), of(2, 8, nil), of(3, 9, nil)
	expired := of(4, 8, func(r *reservation.Reservation) { r.PathEnd = time.Now() })
	ahead := of(5, 8, func(r *reservation.Reservation) { r.PathEnd = time.Now().Add(time.Hour) })
	greedy := of(6, 8, func(r *reservation.Reservation) { r.Quantity = 3 })
	sale := onSale(1, 2)
	closed, upcoming, over, withRoom := sale, sale, sale, sale
	closed.Status = seckill.Closed
	upcoming.StartAt = time.Now().Add(time.Minute)
	over.EndAt = time.Now().Add(-time.Millisecond)
	withRoom.Admission = seckill.ByWaitingRoom
	for name, c := range map[string]struct {
		seckill.Sale
		unitsLeft bool
		epoch     int64
		asked     []reservation.Reservation
		refused   []bool
	}{
		"sold out": {
			Sale: sale, asked: listOf(first, second), refused: []bool{true, true},
		},
		"a buyer with an order": {
			Sale: sale, asked: listOf(first, holder, second), refused: []bool{true, false, true},
		},
		"a unit is left":          {Sale: sale, asked: listOf(first), unitsLeft: true},
		"an expired path":         {Sale: sale, asked: listOf(first, expired)},
		"a path of another clock": {Sale: sale, asked: listOf(first, ahead)},
		"more than the limit":     {Sale: sale, asked: listOf(first, greedy)},
		"another epoch":           {Sale: sale, asked: listOf(first), epoch: 2},
		"closed":                  {Sale: closed, asked: listOf(first)},
		"before the start":        {Sale: upcoming, asked: listOf(first)},
		"after the end":           {Sale: over, asked: listOf(first)},
		"a waiting room":          {Sale: withRoom, asked: listOf(first)},
	} {
		require.NoError(t, s.client.Del(t.Context(), keysOf(goods).sale()).Err())
		opened := c.Sale
		opened.Status, opened.StartAt, opened.EndAt = sale.Status, sale.StartAt, sale.EndAt
		opened.Admission = seckill.ByRate
		s.load(opened)
		if !c.unitsLeft {
			s.reserve(holder)
		}
		if c.Admission == seckill.ByWaitingRoom {
			require.NoError(t, s.client.HSet(t.Context(), keysOf(goods).sale(), "room", 1).Err())
		}
		require.NoError(t, s.UpdateSale(t.Context(), c.Sale))
		before := s.view()
		refused := must.Get(s.SoldOut(t.Context(), goods, max(c.epoch, 1), c.asked))(t)
		if c.refused == nil {
			c.refused = make([]bool, len(c.asked))
		}
		require.Equal(t, c.refused, refused, name)
		after := s.view()
		after.Now, before.Now = time.Time{}, time.Time{}
		require.Equal(t, before, after, "%s: nothing is taken", name)
		for i := range c.asked {
			if refused[i] {
				require.Equal(t, []reservation.Verdict{{Code: reservation.TooFew}},
					s.reserve(c.asked[i]), name)
			}
		}
	}
	must.Get(s.Shut(t.Context(), goods, 1))(t)
	require.Equal(t, []bool{false},
		must.Get(s.SoldOut(t.Context(), goods, 1, listOf(first)))(t))
}

// TestReserve_LeaseEndsWithItsMaster checks that a restart of the master ends the lease of its
// sales. The next epoch opens the sale again.
func TestReserve_LeaseEndsWithItsMaster(t *testing.T) {
	server := servers.Redis(t, "appendfsync always")
	s := open(t, server.Addr(), "")
	s.load(onSale(5, 1))
	require.NoError(t, server.Restart(t.Context()))
	require.Eventually(t, func() bool { return s.client.Ping(t.Context()).Err() == nil },
		time.Minute, 10*time.Millisecond)
	_, err := s.reserveIn(1, reservationOf(1, 7, 1))
	require.Equal(t, seckill.GateLease, gateOf(t, err).State)
	refused := must.Get(s.SoldOut(t.Context(), goods, 1,
		[]reservation.Reservation{reservationOf(1, 7, 1)}))(t)
	require.Equal(t, []bool{false}, refused)
	require.Equal(t, seckill.GateLease, s.view().Gate)
	require.False(t, s.openFor(1, -time.Hour, time.Hour), "MySQL names another master for it")

	s.load(onSaleIn(2, 5, 1))
	g := must.Get(s.reserveIn(2, reservationOf(1, 7, 1)))(t)
	require.Equal(t, reservation.Taken, g.Verdicts[0].Code)
}

func (s fixture) TestReserve_ConcurrentCallsNeverOversell(t *testing.T) {
	const units, buyers = 50, 200
	s.load(onSale(units, 1))
	taken := make(chan string, buyers)
	asked := make([]reservation.Reservation, buyers)
	for i := range asked {
		asked[i] = reservationOf(i, int64(i+1), 1)
	}
	var wg sync.WaitGroup
	for _, r := range asked {
		wg.Go(func() {
			if v := s.reserve(r); v[0].Code == reservation.Taken {
				taken <- v[0].OrderSn
			}
		})
	}
	wg.Wait()
	require.Len(t, taken, units)
	require.Zero(t, s.view().Available)
	require.Len(t, s.pendingSns(), units)
}

// TestReserve_OldBacklogShutsTheGate checks that Redis refuses reservations while its oldest
// pending order is too old. Settling that order opens the gate again. An order's age counts from
// its own call, also if no order was pending for long before.
func (s fixture) TestReserve_OldBacklogShutsTheGate(t *testing.T) {
	s.opts.MaxBacklogMillis = time.Hour.Milliseconds()
	s.load(onSale(5, 1))
	s.reserve(reservationOf(1, 7, 1))
	expired := reservationOf(9, 9, 1)
	expired.PathEnd = time.Time{}
	s.reserve(expired)
	s.opts.MaxBacklogMillis = 20
	var gate *seckill.GateError
	require.Eventually(t, func() bool {
		_, err := s.reserveIn(1, expired)
		return errors.As(err, &gate)
	}, time.Minute, time.Millisecond)
	require.Equal(t, seckill.GateBacklog, gate.State)
	must.Get(s.Settle(t.Context(), goods, []string{"sn1"}))(t)
	require.Equal(t, reservation.Taken, s.reserve(reservationOf(2, 8, 1))[0].Code)
}

// TestReserve_AcceptsPathsOfEarlierReleases runs beside nodes of the release that stored each path.
func (s fixture) TestReserve_AcceptsPathsOfEarlierReleases(t *testing.T) {
	s.load(onSale(9, 9))
	of := func(n int, buyer int64, path string) reservation.Reservation {
		r := reservationOf(n, buyer, 1)
		r.StoredPath, r.PathEnd = path, time.Time{}
		return r
	}
	stored := func(n int, buyer int64, path string) reservation.Verdict {
		return s.reserve(of(n, buyer, path))[0]
	}
	key := keysOf(goods).storedPath
	for path, value := range map[string]string{
		"used": "7 old", "unused": "7@1", "another": "8@1", "earlier epoch": "7@0",
	} {
		require.NoError(t, s.client.Set(t.Context(), key(path), value, time.Minute).Err())
	}
	require.Equal(t, reservation.Verdict{Code: reservation.Repeated, OrderSn: "old"},
		stored(1, 7, "used"))
	for range 2 { // as a node of either release repeats it
		require.Equal(t, "sn2", stored(2, 7, "unused").OrderSn)
		require.Equal(t, "7 sn2", s.client.Get(t.Context(), key("unused")).Val())
		require.Equal(t, "sn2", stored(3, 7, "unused").OrderSn)
	}
	together := s.reserve(of(4, 8, "another"), of(5, 8, "another"), of(6, 7, "invented"))
	require.Equal(t, []reservation.Verdict{
		{Code: reservation.Taken, OrderSn: "sn4"},
		{Code: reservation.Repeated, OrderSn: "sn4"},
		{Code: reservation.WrongPath},
	}, together)
	for _, path := range []string{"another", "earlier epoch", "invented"} {
		require.Equal(t, reservation.WrongPath, stored(4, 7, path).Code, path)
	}
	require.EqualValues(t, 7, s.view().Available)
}

// TestLoad_RejectsARestartSinceItBeganToStage checks that a load fails if Redis restarted since it
// began to stage the buyers. A restart without the last second undoes a close that was answered.
func TestLoad_RejectsARestartSinceItBeganToStage(t *testing.T) {
	server := servers.Redis(t, "appendonly no")
	s := open(t, server.Addr(), "")
	sale := onSale(5, 1)
	s.load(sale)
	must.Get(s.Shut(t.Context(), goods, 1))(t)
	next, closed := onSaleIn(2, 5, 1), onSaleIn(2, 5, 1)
	next.Version, closed.Version, closed.Status = 7, 8, seckill.Closed
	loaded, err := s.loadPages(next, func(yield func([]order.Held, error) bool) {
		require.True(t, yield(held(1), nil))
		require.NoError(t, s.client.Save(t.Context()).Err())
		require.ErrorIs(t, s.UpdateSale(t.Context(), closed), seckill.ErrNotLoaded)
		require.NoError(t, server.Restart(t.Context()))
		require.Eventually(t, func() bool { return s.client.Ping(t.Context()).Err() == nil },
			time.Minute, 10*time.Millisecond)
		require.False(t, yield(held(1), nil))
	})
	require.NoError(t, err)
	require.False(t, loaded)
	s.load(closed)
}
