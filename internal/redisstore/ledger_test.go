package redisstore

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestSettle_MovesPendingToSoldOnce(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 5))
		reserve(t, s, issuePath(t, s, 1, 7, 3), issuePath(t, s, 2, 8, 2))
		for range 2 {
			must.Get(s.Settle(t.Context(), goods, []string{"sn1", "sn1", "unknown"}))(t)
		}
		v := view(t, s)
		require.EqualValues(t, []int64{5, 2, 3}, []int64{v.Available, v.Pending, v.Sold})
		require.Equal(t, []string{"sn2"}, pendingSns(t, s))
	})
}

func cancelOf(sn string, buyer, quantity int64) order.StockMove {
	return order.StockMove{
		ID: "move of " + sn, GoodsID: goods, Epoch: 1, Kind: order.MoveCancel,
		BuyerID: buyer, OrderSn: sn, Quantity: quantity,
	}
}

func TestRelease_ReturnsUnitsOnceBeforeAndAfterSettle(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 4))
		reserve(t, s, issuePath(t, s, 1, 7, 3), issuePath(t, s, 2, 8, 2), issuePath(t, s, 3, 8, 1))
		must.Get(s.Settle(t.Context(), goods, []string{"sn1"}))(t)
		settled, early := cancelOf("sn1", 7, 3), cancelOf("sn2", 8, 2)
		require.Equal(t, []order.MoveResult{order.MoveApplied, order.MoveApplied},
			release(t, s, settled, early))
		require.Equal(t, []order.MoveResult{order.MoveAppliedBefore, order.MoveAppliedBefore},
			release(t, s, settled, early))
		must.Get(s.Settle(t.Context(), goods, []string{"sn2"}))(t)
		v := view(t, s)
		require.EqualValues(t, []int64{9, 1, 0}, []int64{v.Available, v.Pending, v.Sold})

		verdicts := reserve(t, s, issuePath(t, s, 4, 7, 4), issuePath(t, s, 5, 8, 4),
			issuePath(t, s, 6, 8, 3))
		require.Equal(t, []reservation.Verdict{
			{Code: reservation.Taken, OrderSn: "sn4"},
			{Code: reservation.OverLimit, OrderSns: []string{"sn3"}},
			{Code: reservation.Taken, OrderSn: "sn6"},
		}, verdicts, "a buyer may buy again what went back")
	})
}

func TestRelease_ChecksTheEpoch(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		m := cancelOf("sn1", 7, 1)
		require.Equal(t, []order.MoveResult{order.MoveDeferred}, release(t, s, m),
			"redis has no such sale")
		load(t, s, onSale(10, 5))
		m.Epoch = 2
		require.Equal(t, []order.MoveResult{order.MoveDeferred}, release(t, s, m))
		m.Epoch = 0
		require.Equal(t, []order.MoveResult{order.MoveCovered}, release(t, s, m))
		require.EqualValues(t, 10, view(t, s).Available)
	})
}

func TestRelease_FailedOrderReturnsOnlyWhatItTook(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 5))
		reserve(t, s, issuePath(t, s, 1, 7, 2))
		took, tookNothing := cancelOf("sn1", 7, 2), cancelOf("sn9", 9, 1)
		took.Kind, tookNothing.Kind = order.MoveFail, order.MoveFail
		release(t, s, took, tookNothing)
		v := view(t, s)
		require.EqualValues(t, []int64{10, 0, 0}, []int64{v.Available, v.Pending, v.Sold})
	})
}

func TestRelease_DeltaCutsOnlyUnsoldUnits(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 5))
		delta := func(id string, units int64) order.MoveResult {
			return release(t, s, order.StockMove{
				ID: id, GoodsID: goods, Epoch: 1, Kind: order.MoveDelta, Quantity: units,
			})[0]
		}
		require.Equal(t, order.MoveApplied, delta("a", 5))
		require.Equal(t, order.MoveAppliedBefore, delta("a", 5))
		require.Equal(t, order.CutTooLarge, delta("b", -16))
		require.Equal(t, order.MoveApplied, delta("c", -15))
		v := view(t, s)
		require.Zero(t, v.Available)
		require.Zero(t, v.Total)
	})
}

func TestLoad_LoadsHoldingsAndRejectsOldEpochs(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 2))
		reserve(t, s, issuePath(t, s, 1, 7, 2))
		snap := onSale(10, 2)
		snap.Epoch, snap.Stock = 3, 8
		snap.Holdings = []rebuild.Holding{
			{BuyerID: 7, Held: 2, Orders: []rebuild.HeldOrder{{OrderSn: "sn1", Quantity: 2}}},
		}
		load(t, s, snap)
		v := view(t, s)
		require.EqualValues(t, []int64{3, 8, 0, 2},
			[]int64{v.Epoch, v.Available, v.Pending, v.Sold})
		require.Equal(t, snap.Rate, v.Rate)
		require.Equal(t, snap.Title, v.Title)
		for _, epoch := range []int64{1, 2, 3} {
			snap.Epoch, snap.Stock = epoch, 10
			require.False(t, must.Get(s.Load(t.Context(), snap))(t))
		}
		require.EqualValues(t, 8, view(t, s).Available)
		must.Get(s.IssuePaths(t.Context(), goods, 3, reservation.PathTTL,
			[]reservation.PathGrant{{Path: path(2), BuyerID: 7}}))(t)
		require.Equal(t,
			[]reservation.Verdict{{Code: reservation.OverLimit, OrderSns: []string{"sn1"}}},
			must.Get(s.Reserve(t.Context(), goods, 3,
				[]reservation.Reservation{reservationOf(2, 7, 1)}))(t).Verdicts)
	})
}

func TestAdopt_TakesOnceAndOnlyWhatIsLeft(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(3, 2))
		lines := []reservation.OrderLine{
			{
				OrderSn: "a", BuyerID: 7, Quantity: 2,
			}, {OrderSn: "b", BuyerID: 7, Quantity: 1}, {OrderSn: "c", BuyerID: 8, Quantity: 2},
		}
		for range 2 {
			require.Equal(t, map[string]bool{"a": true, "b": true, "c": false},
				must.Get(s.Adopt(t.Context(), goods, 1, 0, lines))(t))
		}
		v := view(t, s)
		require.EqualValues(t, []int64{0, 3, 0}, []int64{v.Available, v.Pending, v.Sold})
	})
}

// A rebuild waits for the queue; an order that waited for the rebuild would block the queue
// forever.
func TestAdopt_ShutGateAcceptsLateOrders(t *testing.T) {
	late := []reservation.OrderLine{{OrderSn: "a", BuyerID: 7, Quantity: 2}}
	for name, shut := range map[string]func(t *testing.T, s *Store){
		"on purpose": func(t *testing.T, s *Store) {
			load(t, s, onSale(3, 2))
			require.NoError(t, s.Shut(t.Context(), goods, 1))
		},
		"under another lease": func(t *testing.T, s *Store) {
			load(t, s, onSale(3, 2))
			s.lease = "another"
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *Store) {
				shut(t, s)
				require.Equal(t, map[string]bool{"a": true},
					must.Get(s.Adopt(t.Context(), goods, 1, 0, late))(t))
				v := view(t, s)
				require.NotEqual(t, seckill.GateOpen, v.Gate)
				require.EqualValues(t, []int64{3, 0, 0}, []int64{v.Available, v.Pending, v.Sold},
					"nothing is taken")
			})
		})
	}
}

// MySQL began epoch 2 and its rebuilder died, or sleeps, before it loaded it.
func TestLoad_RejectsAnEpochWithoutAdoptedOrders(t *testing.T) {
	late := []reservation.OrderLine{{OrderSn: "a", BuyerID: 7, Quantity: 2}}
	for name, before := range map[string]func(t *testing.T, s *Store){
		"Redis is empty": func(*testing.T, *Store) {},
		"Redis has an older one": func(t *testing.T, s *Store) {
			load(t, s, onSale(3, 2))
			require.NoError(t, s.Shut(t.Context(), goods, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *Store) {
				before(t, s)
				require.Equal(t, map[string]bool{"a": true},
					must.Get(s.Adopt(t.Context(), goods, 2, 0, late))(t))
				snap := onSale(3, 2)
				snap.Epoch = 2
				require.False(t, must.Get(s.Load(t.Context(), snap))(t), "it lacks the order")
				snap.Epoch, snap.Stock = 3, 1
				load(t, s, snap)
				require.EqualValues(t, 1, view(t, s).Available)
			})
		})
	}
}

func TestAdopt_RejectsAnEndedEpoch(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		snap := onSale(3, 2)
		snap.Epoch = 2
		load(t, s, snap)
		_, err := s.Adopt(t.Context(), goods, 1, 0,
			[]reservation.OrderLine{{OrderSn: "a", BuyerID: 7, Quantity: 2}})
		_, shut := errors.AsType[*seckill.GateError](err)
		require.True(t, shut, "%v", err)
	})
}

func TestUpdateSale_CreatesNoSale(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		require.ErrorIs(t, s.UpdateSale(t.Context(), onSale(1, 1).Sale), seckill.ErrNotLoaded)
		_, err := s.View(t.Context(), goods)
		require.ErrorIs(t, err, seckill.ErrNotLoaded)
	})
}

func TestRelease_RefusedCutStaysRefused(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 5))
		cut := order.StockMove{
			ID: "cut", GoodsID: goods, Epoch: 1, Kind: order.MoveDelta, Quantity: -12,
		}
		more := order.StockMove{
			ID: "more", GoodsID: goods, Epoch: 1, Kind: order.MoveDelta, Quantity: 5,
		}
		require.Equal(t,
			[]order.MoveResult{order.CutTooLarge, order.MoveApplied, order.CutTooLarge},
			release(t, s, cut, more, cut), "a repeated call gets the same result")
		require.EqualValues(t, 15, view(t, s).Available)
	})
}

// A delayed first load must not open the gate during a rebuild that has begun meanwhile.
func TestLoad_RejectsAnEpochBegunBeforeShut(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		require.NoError(t, s.Shut(t.Context(), goods, 1))
		slow := onSale(10, 5)
		require.False(t, must.Get(s.Load(t.Context(), slow))(t))
		_, err := s.View(t.Context(), goods)
		require.ErrorIs(t, err, seckill.ErrNotLoaded)
		slow.Epoch = 2
		load(t, s, slow)
	})
}

// A rebuild shuts the gate on one master, another is promoted, a delayed load opens the gate there,
// and a buyer reserves. The rebuild has not drained that reservation and must not drop it.
func TestLoad_RejectsAnOpenGate(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 5))
		reserve(t, s, issuePath(t, s, 1, 7, 2))
		next := onSale(10, 5)
		next.Epoch = 2
		require.False(t, must.Get(s.Load(t.Context(), next))(t))
		v := view(t, s)
		require.EqualValues(t, []int64{1, 8, 2}, []int64{v.Epoch, v.Available, v.Pending})
		load(t, s, next)
		require.EqualValues(t, 2, view(t, s).Epoch)
	})
}

func TestRelease_DefersWhileTheGateIsShut(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 5))
		require.NoError(t, s.Shut(t.Context(), goods, 1))
		m := cancelOf("sn1", 7, 1)
		require.Equal(t, []order.MoveResult{order.MoveDeferred}, release(t, s, m))
		again := onSale(10, 5)
		again.Epoch = 2
		load(t, s, again)
		require.Equal(t, []order.MoveResult{order.MoveCovered}, release(t, s, m))
	})
}

// The buyer has bought again since; adopting the old order must not make the newer one fail.
func TestAdopt_ChecksTheBuyersLimit(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(10, 2))
		reserve(t, s, issuePath(t, s, 1, 7, 2))
		late := []reservation.OrderLine{
			{OrderSn: "late", BuyerID: 7, Quantity: 1}, {OrderSn: "other", BuyerID: 8, Quantity: 1},
		}
		adopted := must.Get(s.Adopt(t.Context(), goods, 1, 2, late))(t)
		require.Equal(t, map[string]bool{"late": false, "other": true}, adopted)
		adopted = must.Get(s.Adopt(t.Context(), goods, 1, 3, late))(t)
		require.Equal(t, map[string]bool{"late": true, "other": true}, adopted,
			"the limit was higher once")
		require.EqualValues(t, 6, view(t, s).Available)
	})
}
