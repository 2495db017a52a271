package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// TestADryBucketSendsForUnits: what this bucket lacks and the others have is asked for, and nothing is taken; the path stays good
// for when the units are there. More than there is anywhere is sold out.
func TestADryBucketSendsForUnits(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		snap := onSale(2, 9)
		snap.Others = 6
		load(t, s, snap)
		rs := []seckill.Reservation{want(t, s, 1, 7, 3), want(t, s, 2, 8, 9), want(t, s, 3, 9, 2), want(t, s, 4, 10, 1)}
		require.Equal(t, []seckill.Verdict{
			{Code: seckill.Elsewhere}, {Code: seckill.TooFew, Available: 8}, {Code: seckill.Taken, OrderSn: "sn3"}, {Code: seckill.Elsewhere},
		}, reserve(t, s, rs...))
		v := view(t, s)
		require.EqualValues(t, []int64{0, 2, 6, 6, 4, 3}, []int64{v.Available, v.Pending, v.Others, v.ForSale(), v.Thirst.Units, v.Thirst.Most})
		require.WithinDuration(t, v.Now, v.Thirst.At, time.Minute)
		require.Equal(t, seckill.Elsewhere, reserve(t, s, rs[3])[0].Code)
		require.EqualValues(t, []int64{5, 3}, []int64{view(t, s).Thirst.Units, view(t, s).Thirst.Most}, "the largest ask is kept")
		_, err := s.IssuePaths(t.Context(), goods, 1, time.Minute, []seckill.PathGrant{{Path: path(9), BuyerID: 11}})
		require.NoError(t, err, "it is not sold out")

		require.Equal(t, []order.Given{order.GivenNow}, give(t, s, order.Move{ID: "m", GoodsID: goods, Epoch: 1, Kind: order.MoveDelta, Quantity: 4}))
		v = view(t, s)
		require.EqualValues(t, []int64{4, 6, 0, 0, 5}, []int64{v.Available, v.Total, v.Thirst.Units, v.Thirst.Most, v.Thirst.Owed})
		require.False(t, v.Thirst.Fed.IsZero())
		require.Equal(t, seckill.Taken, reserve(t, s, rs[0])[0].Code, "the same path")

		require.NoError(t, s.TellOthers(t.Context(), goods, 1, 0))
		require.Equal(t, seckill.Verdict{Code: seckill.TooFew, Available: 1}, reserve(t, s, want(t, s, 5, 12, 2))[0])
		require.ErrorIs(t, s.TellOthers(t.Context(), goods, 2, 5), seckill.ErrNotLoaded, "of another epoch nothing is told")
	})
}

// TestUnitsThatLeaveAreStillForSale: who comes to a bucket whose last unit has just been carried off is not told that the sale is
// sold out, although no mover has told the bucket yet what the others have.
func TestUnitsThatLeaveAreStillForSale(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		load(t, s, onSale(1, 9))
		require.Equal(t, []order.Given{order.GivenNow}, give(t, s, order.Move{ID: "m", GoodsID: goods, Epoch: 1, Kind: order.MoveCarry, Quantity: -1}))
		v := view(t, s)
		require.EqualValues(t, []int64{0, 0, 1}, []int64{v.Total, v.Available, v.Others})
		require.Equal(t, seckill.Elsewhere, reserve(t, s, want(t, s, 1, 7, 1))[0].Code)
	})
}

func TestAnotherEpochForgetsWhoAsked(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		snap := onSale(1, 9)
		snap.Others = 3
		load(t, s, snap)
		require.Equal(t, seckill.Elsewhere, reserve(t, s, want(t, s, 1, 7, 2))[0].Code)
		snap.Epoch, snap.Others = 2, 0
		load(t, s, snap)
		v := view(t, s)
		require.Zero(t, v.Others)
		require.Equal(t, seckill.Thirst{}, v.Thirst)
	})
}

func TestTurnsAreTakenAndKept(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		turn := func(who string, life time.Duration) bool {
			mine, err := s.TakeTurn(t.Context(), goods, who, life)
			require.NoError(t, err)
			return mine
		}
		require.True(t, turn("a", time.Minute))
		require.False(t, turn("b", time.Minute))
		require.True(t, turn("a", time.Minute))
	})
}
