package redisstore

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestSettle_MovesPendingToSoldOnce checks that repeated and unknown order numbers do not change
// the sums of a settlement.
func (s fixture) TestSettle_MovesPendingToSoldOnce(t *testing.T) {
	s.load(onSale(10, 5))
	s.reserve(reservationOf(1, 7, 3), reservationOf(2, 8, 2))
	for range 2 {
		must.Get(s.Settle(t.Context(), goods, []string{"sn1", "sn1", "unknown"}))(t)
	}
	s.requireUnits(5, 2, 3)
	require.Equal(t, []string{"sn2"}, s.pendingSns())
}

func cancelOf(sn string, buyer, quantity int64) order.StockMove {
	return order.StockMove{
		ID: "move of " + sn, GoodsID: goods, Epoch: 1, Kind: order.MoveCancel,
		BuyerID: buyer, OrderSn: sn, Quantity: quantity,
	}
}

func deltaOf(id string, units int64) order.StockMove {
	return order.StockMove{
		ID: id, GoodsID: goods, Epoch: 1, Kind: order.MoveDelta, Quantity: units,
	}
}

// TestRelease_ReturnsUnitsOnceBeforeAndAfterSettle checks that a release returns the units of
// pending and of settled orders once. A buyer can then buy these units again.
func (s fixture) TestRelease_ReturnsUnitsOnceBeforeAndAfterSettle(t *testing.T) {
	s.load(onSale(10, 4))
	s.reserve(reservationOf(1, 7, 3), reservationOf(2, 8, 2), reservationOf(3, 8, 1))
	must.Get(s.Settle(t.Context(), goods, []string{"sn1"}))(t)
	settled, early := cancelOf("sn1", 7, 3), cancelOf("sn2", 8, 2)
	require.Equal(t, []order.MoveResult{order.MoveApplied, order.MoveApplied},
		s.release(settled, early))
	require.Equal(t, []order.MoveResult{order.MoveAppliedBefore, order.MoveAppliedBefore},
		s.release(settled, early))
	must.Get(s.Settle(t.Context(), goods, []string{"sn2"}))(t)
	s.requireUnits(9, 1, 0)

	verdicts := s.reserve(reservationOf(4, 7, 4), reservationOf(5, 8, 4), reservationOf(6, 8, 3))
	require.Equal(t, []reservation.Verdict{
		{Code: reservation.Taken, OrderSn: "sn4"},
		{Code: reservation.OverLimit, OrderSns: []string{"sn3"}},
		{Code: reservation.Taken, OrderSn: "sn6"},
	}, verdicts, "a buyer may buy the returned units again")
}

// TestRelease_ChecksTheEpoch checks that Redis defers a stock move of a later epoch and ignores one
// that its epoch already covers.
func (s fixture) TestRelease_ChecksTheEpoch(t *testing.T) {
	m := cancelOf("sn1", 7, 1)
	require.Equal(t, []order.MoveResult{order.MoveDeferred}, s.release(m), "redis has no such sale")
	s.load(onSale(10, 5))
	m.Epoch = 2
	require.Equal(t, []order.MoveResult{order.MoveDeferred}, s.release(m))
	m.Epoch = 0
	require.Equal(t, []order.MoveResult{order.MoveCovered}, s.release(m))
	require.EqualValues(t, 10, s.view().Available)
}

// TestRelease_FailedOrderReturnsOnlyWhatItTook checks that the release of a failed order returns no
// more units than Redis reserved for it.
func (s fixture) TestRelease_FailedOrderReturnsOnlyWhatItTook(t *testing.T) {
	s.load(onSale(10, 5))
	s.reserve(reservationOf(1, 7, 2))
	took, tookNothing := cancelOf("sn1", 7, 2), cancelOf("sn9", 9, 1)
	took.Kind, tookNothing.Kind = order.MoveFail, order.MoveFail
	s.release(took, tookNothing)
	s.requireUnits(10, 0, 0)
}

// TestRelease_DeltaCutsOnlyUnsoldUnits checks that Redis refuses a cut of more units than are
// available, and applies each change once. It repeats the refusal, even after enough units were
// added.
func (s fixture) TestRelease_DeltaCutsOnlyUnsoldUnits(t *testing.T) {
	s.load(onSale(10, 5))
	raise, cut := deltaOf("a", 5), deltaOf("b", -16)
	require.Equal(t, []order.MoveResult{
		order.MoveApplied, order.MoveAppliedBefore, order.CutTooLarge, order.MoveApplied,
		order.CutTooLarge, order.MoveApplied,
	}, s.release(raise, raise, cut, deltaOf("c", 5), cut, deltaOf("d", -20)))
	v := s.view()
	require.Zero(t, v.Available)
	require.Zero(t, v.Total)
}

// TestLoad_LoadsHoldingsAndRejectsOldEpochs checks that a load restores the buyers' holdings, and
// that Redis rejects the current epoch and older ones.
func (s fixture) TestLoad_LoadsHoldingsAndRejectsOldEpochs(t *testing.T) {
	s.load(onSale(10, 2))
	s.reserve(reservationOf(1, 7, 2))
	snap := onSale(10, 2)
	snap.Epoch, snap.Stock = 3, 8
	snap.Holdings = []rebuild.Holding{
		{BuyerID: 7, Held: 2, Orders: []rebuild.HeldOrder{{OrderSn: "sn1", Quantity: 2}}},
	}
	s.load(snap)
	v := s.view()
	require.EqualValues(t, []int64{3, 8, 0, 2}, []int64{v.Epoch, v.Available, v.Pending, v.Sold})
	require.Equal(t, snap.Rate, v.Rate)
	require.Equal(t, snap.Title, v.Title)
	for _, epoch := range []int64{1, 2, 3} {
		snap.Epoch, snap.Stock = epoch, 10
		require.False(t, must.Get(s.Load(t.Context(), snap))(t))
	}
	require.EqualValues(t, 8, s.view().Available)
	require.Equal(t,
		[]reservation.Verdict{{Code: reservation.OverLimit, OrderSns: []string{"sn1"}}},
		must.Get(s.reserveIn(3, reservationOf(2, 7, 1)))(t).Verdicts)
}

// TestAdopt_TakesOnceAndOnlyWhatIsLeft checks that Redis adopts each late order once, and only
// while units are available.
func (s fixture) TestAdopt_TakesOnceAndOnlyWhatIsLeft(t *testing.T) {
	s.load(onSale(3, 2))
	lines := []reservation.OrderLine{
		{OrderSn: "a", BuyerID: 7, Quantity: 2},
		{OrderSn: "b", BuyerID: 7, Quantity: 1},
		{OrderSn: "c", BuyerID: 8, Quantity: 2},
	}
	for range 2 {
		require.Equal(t, map[string]int64{"a": 2, "b": 1, "c": 0},
			must.Get(s.Adopt(t.Context(), goods, 1, 0, lines))(t))
	}
	s.requireUnits(0, 3, 0)
}

// TestAdopt_EndedOrderTakesNothing checks that a consumer that slept takes no units for an order that
// another one wrote and its buyer cancelled. A requeue takes them again.
func (s fixture) TestAdopt_EndedOrderTakesNothing(t *testing.T) {
	s.load(onSale(3, 2))
	late := []reservation.OrderLine{{OrderSn: "a", BuyerID: 7, Quantity: 2}}
	adopt := func(limit int64) int64 {
		return must.Get(s.Adopt(t.Context(), goods, 1, limit, late))(t)["a"]
	}
	require.EqualValues(t, 2, adopt(2))
	must.Get(s.Settle(t.Context(), goods, []string{"a"}))(t)
	require.Equal(t, []order.MoveResult{order.MoveApplied}, s.release(cancelOf("a", 7, 2)))
	require.Zero(t, adopt(2))
	s.requireUnits(3, 0, 0)
	require.EqualValues(t, 2, adopt(0))
	s.requireUnits(1, 2, 0)
}

// TestAdopt_NeedsTheOpenGateOfItsEpoch checks that Redis adopts no order without the sale, in
// another epoch, behind a shut gate and with the lease of another master. The refusal changes
// nothing: neither units nor the fence.
func (s fixture) TestAdopt_NeedsTheOpenGateOfItsEpoch(t *testing.T) {
	refuses := func(epoch int64, state seckill.GateState) {
		t.Helper()
		_, err := s.Adopt(t.Context(), goods, epoch, 0,
			[]reservation.OrderLine{{OrderSn: "a", BuyerID: 7, Quantity: 2}})
		require.Equal(t, state, gateOf(t, err).State)
	}
	refuses(1, seckill.GateMissing)
	s.load(onSaleIn(2, 3, 2))
	refuses(1, seckill.GateEpoch)
	refuses(3, seckill.GateEpoch)
	s.requireUnits(3, 0, 0)
	must.Get(s.Shut(t.Context(), goods, 2))(t)
	refuses(2, seckill.GateShut)
	s.load(onSaleIn(3, 3, 2))
	s.lease = "another"
	refuses(3, seckill.GateLease)
	s.requireUnits(3, 0, 0)
}

func (s fixture) TestUpdateSale_CreatesNoSale(t *testing.T) {
	require.ErrorIs(t, s.UpdateSale(t.Context(), onSale(1, 1).Sale), seckill.ErrNotLoaded)
	_, err := s.View(t.Context(), goods)
	require.ErrorIs(t, err, seckill.ErrNotLoaded)
}

// TestUpdateSale_OlderVersionChangesNothing checks that the newer of two changes prevails, whichever
// reaches Redis first. The versions are compared as numbers.
func (s fixture) TestUpdateSale_OlderVersionChangesNothing(t *testing.T) {
	snap := onSale(10, 5)
	snap.Version = 9
	s.load(snap)
	closed, older := snap.Sale, snap.Sale
	closed.Version, closed.Status = 11, seckill.Closed
	older.Version, older.PerBuyerLimit = 10, 1
	for _, sale := range []seckill.Sale{closed, older, closed} {
		require.NoError(t, s.UpdateSale(t.Context(), sale))
		v := s.view()
		require.Equal(t, seckill.Closed, v.Status)
		require.EqualValues(t, 5, v.PerBuyerLimit)
	}
}

// TestLoad_RejectsAnOlderVersionThanAChange checks that a load does not undo a change that came
// while it was under way, and that the next load has that change.
func (s fixture) TestLoad_RejectsAnOlderVersionThanAChange(t *testing.T) {
	s.load(onSale(10, 5))
	must.Get(s.Shut(t.Context(), goods, 1))(t)
	begun := onSaleIn(2, 10, 5)
	begun.Version = 4
	closed := begun.Sale
	closed.Version, closed.Status = 5, seckill.Closed
	require.ErrorIs(t, s.UpdateSale(t.Context(), closed), seckill.ErrNotLoaded)
	require.False(t, must.Get(s.Load(t.Context(), begun))(t))
	begun.Sale, begun.Epoch, begun.Version = closed, 3, 6
	require.True(t, must.Get(s.Load(t.Context(), begun))(t))
	require.Equal(t, seckill.Closed, s.view().Status)
}

// TestLoad_RejectsAnEpochBegunBeforeShut checks that a delayed first load does not open the gate
// during a rebuild that began later.
func (s fixture) TestLoad_RejectsAnEpochBegunBeforeShut(t *testing.T) {
	must.Get(s.Shut(t.Context(), goods, 1))(t)
	slow := onSale(10, 5)
	require.False(t, must.Get(s.Load(t.Context(), slow))(t))
	_, err := s.View(t.Context(), goods)
	require.ErrorIs(t, err, seckill.ErrNotLoaded)
	slow.Epoch = 2
	s.load(slow)
}

// afterFirstStage calls a function after the first pipeline that stages buyers.
type afterFirstStage struct {
	redis.Hook
	call func()
}

func (h *afterFirstStage) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *afterFirstStage) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *afterFirstStage) ProcessPipelineHook(
	next redis.ProcessPipelineHook,
) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if call := h.call; call != nil && cmds[0].Name() == "hset" {
			h.call = nil
			call()
		}
		return err
	}
}

// TestLoad_RejectsAnIncompleteStage checks that a load fails if Redis was emptied after it staged
// the first buyers: their orders would be forgotten.
func (s fixture) TestLoad_RejectsAnIncompleteStage(t *testing.T) {
	snap := onSale(10, 5)
	for buyer := range int64(stageBatch + 1) {
		snap.Holdings = append(snap.Holdings, rebuild.Holding{
			BuyerID: buyer, Orders: []rebuild.HeldOrder{{OrderSn: "sn"}},
		})
	}
	s.client.(interface{ AddHook(redis.Hook) }).AddHook(&afterFirstStage{call: func() {
		_ = s.client.Unlink(t.Context(), keysOf(goods).stage(snap.Epoch))
	}})
	require.False(t, must.Get(s.Load(t.Context(), snap))(t))
	v, err := s.View(t.Context(), goods)
	require.ErrorIs(t, err, seckill.ErrNotLoaded)
	require.False(t, v.Now.IsZero(), "a load needs Redis' clock")
	s.load(snap)
}

// TestLoad_RejectsAnOpenGate checks that a load does not overwrite a sale with an open gate. A
// rebuild shuts the gate on one master, and another is promoted. A delayed load opens the gate
// there, and a buyer reserves. The rebuild must not drop that reservation, because it has not
// drained it.
func (s fixture) TestLoad_RejectsAnOpenGate(t *testing.T) {
	s.load(onSale(10, 5))
	s.reserve(reservationOf(1, 7, 2))
	next := onSaleIn(2, 10, 5)
	require.False(t, must.Get(s.Load(t.Context(), next))(t))
	v := s.view()
	require.EqualValues(t, []int64{1, 8, 2}, []int64{v.Epoch, v.Available, v.Pending})
	s.load(next)
	require.EqualValues(t, 2, s.view().Epoch)
}

// TestRelease_DefersWhileTheGateIsShut checks that Redis defers a stock move behind a shut gate.
// The next epoch already covers the move.
func (s fixture) TestRelease_DefersWhileTheGateIsShut(t *testing.T) {
	s.load(onSale(10, 5))
	must.Get(s.Shut(t.Context(), goods, 1))(t)
	m := cancelOf("sn1", 7, 1)
	require.Equal(t, []order.MoveResult{order.MoveDeferred}, s.release(m))
	s.load(onSaleIn(2, 10, 5))
	require.Equal(t, []order.MoveResult{order.MoveCovered}, s.release(m))
}

// TestAdopt_ChecksTheBuyersLimit checks that Redis adopts no order beyond the buyer's limit. The
// buyer has bought again since, and the newer order must not fail because of the old one.
func (s fixture) TestAdopt_ChecksTheBuyersLimit(t *testing.T) {
	s.load(onSale(10, 2))
	s.reserve(reservationOf(1, 7, 2))
	late := []reservation.OrderLine{
		{OrderSn: "late", BuyerID: 7, Quantity: 1}, {OrderSn: "other", BuyerID: 8, Quantity: 1},
	}
	adopted := must.Get(s.Adopt(t.Context(), goods, 1, 2, late))(t)
	require.Equal(t, map[string]int64{"late": 0, "other": 1}, adopted)
	late[0].OrderSn = "next"
	adopted = must.Get(s.Adopt(t.Context(), goods, 1, 3, late))(t)
	require.Equal(t, map[string]int64{"next": 1, "other": 1}, adopted,
		"the limit was higher once")
	require.EqualValues(t, 6, s.view().Available)
}
