package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestSettle_MovesPendingToSoldOnce checks that repeated and unknown order numbers do not change
// the sums of a settlement.
func (s fixture) TestSettle_MovesPendingToSoldOnce(t *testing.T) {
	s.load(onSale(10, 5))
	s.reserve(reservationOf(1, 7, 3), reservationOf(2, 8, 2))
	for _, settled := range []int{1, 0} {
		require.Equal(t, settled,
			must.Get(s.Settle(t.Context(), goods, []string{"sn1", "sn1", "unknown"}))(t))
	}
	s.requireUnits(5, 2, 3)
	require.Equal(t, []string{"sn2"}, s.pendingSns())
}

// TestSettle_BacklogBeginsAtTheNewestSettledOrder checks that the age of a backlog does not grow
// while orders are written and newer ones are always pending. The first two are adopted.
func (s fixture) TestSettle_BacklogBeginsAtTheNewestSettledOrder(t *testing.T) {
	s.load(onSale(10, 1))
	for n := range 4 {
		if r := reservationOf(n, int64(n), 1); n < 2 {
			must.Get(s.Adopt(t.Context(), goods, 1, 1, []reservation.OrderLine{r.OrderLine}))(t)
		} else {
			s.reserve(r)
		}
		time.Sleep(2 * time.Millisecond) // the next order is newer
	}
	at := map[string]time.Time{}
	for page, err := range s.PendingPages(t.Context(), goods, 10) {
		require.NoError(t, err)
		for _, p := range page {
			at[p.OrderSn] = p.At
		}
	}
	require.Equal(t, at["sn0"], s.view().PendingSince)
	must.Get(s.Settle(t.Context(), goods, []string{"sn0", "sn2", "sn1"}))(t)
	require.Equal(t, at["sn2"], s.view().PendingSince)
	require.True(t, at["sn2"].After(at["sn1"]))
}

func cancelOf(sn string, buyer, quantity int64) order.StockMove {
	return order.StockMove{
		ID: "move of " + sn, GoodsID: goods, Epoch: 1, Kind: order.MoveCancel,
		BuyerID: fmt.Sprint(buyer), OrderSn: sn, Quantity: quantity,
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
	sale := onSale(10, 2)
	sale.Epoch, sale.Stock = 3, 8
	s.load(sale, order.Held{BuyerID: "7", OrderSn: "sn1", Quantity: 2})
	v := s.view()
	require.EqualValues(t, []int64{3, 8, 0, 2}, []int64{v.Epoch, v.Available, v.Pending, v.Sold})
	require.Equal(t, sale.Rate, v.Rate)
	require.Equal(t, sale.Title, v.Title)
	for _, epoch := range []int64{1, 2, 3} {
		sale.Epoch, sale.Stock = epoch, 10
		require.False(t, must.Get(s.loadPages(sale, pagesOf()))(t))
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
		{OrderSn: "none", BuyerID: "7"},
		{OrderSn: "below", BuyerID: "8", Quantity: -1},
		{OrderSn: "a", BuyerID: "7", Quantity: 2},
		{OrderSn: "b", BuyerID: "7", Quantity: 1},
		{OrderSn: "c", BuyerID: "8", Quantity: 2},
	}
	for range 2 {
		require.Equal(t, map[string]int64{"none": 0, "below": 0, "a": 2, "b": 1, "c": 0},
			must.Get(s.Adopt(t.Context(), goods, 1, 0, lines))(t))
	}
	s.requireUnits(0, 3, 0)
	require.ElementsMatch(t, []string{"a", "b"}, s.pendingSns())
}

// TestAdopt_EndedOrderTakesNothing checks that a consumer that slept takes no units for an order
// that another one wrote and its buyer cancelled. A requeue takes them again, within the limit.
func (s fixture) TestAdopt_EndedOrderTakesNothing(t *testing.T) {
	s.load(onSale(3, 2))
	late := []reservation.OrderLine{{OrderSn: "a", BuyerID: "7", Quantity: 2}}
	adopt := func(limit int64) int64 {
		return must.Get(s.Adopt(t.Context(), goods, 1, limit, late))(t)["a"]
	}
	require.EqualValues(t, 2, adopt(2))
	must.Get(s.Settle(t.Context(), goods, []string{"a"}))(t)
	require.Equal(t, []order.MoveResult{order.MoveApplied}, s.release(cancelOf("a", 7, 2)))
	require.Zero(t, adopt(2))
	s.requireUnits(3, 0, 0)
	retake := func(limit int64) int64 {
		return must.Get(s.Retake(t.Context(), goods, 1, limit, late[0]))(t)
	}
	require.Zero(t, retake(1), "the buyer's limit holds for a requeue")
	require.EqualValues(t, 2, retake(2))
	s.requireUnits(1, 2, 0)
}

// TestAdopt_NeedsTheOpenGateOfItsEpoch checks that Redis adopts no order without the sale, in
// another epoch, behind a shut gate and with the lease of another master. The refusal changes
// nothing: neither units nor the fence.
func (s fixture) TestAdopt_NeedsTheOpenGateOfItsEpoch(t *testing.T) {
	refuses := func(epoch int64, state seckill.GateState) {
		t.Helper()
		_, err := s.Adopt(t.Context(), goods, epoch, 0,
			[]reservation.OrderLine{{OrderSn: "a", BuyerID: "7", Quantity: 2}})
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
	s.opts.Lease = "another"
	refuses(3, seckill.GateLease)
	s.requireUnits(3, 0, 0)
}

func (s fixture) TestUpdateSale_CreatesNoSale(t *testing.T) {
	require.ErrorIs(t, s.UpdateSale(t.Context(), onSale(1, 1)), seckill.ErrNotLoaded)
	_, err := s.View(t.Context(), goods)
	require.ErrorIs(t, err, seckill.ErrNotLoaded)
}

// TestUpdateSale_OlderVersionChangesNothing checks that the newer of two changes prevails,
// whichever reaches Redis first. The versions are compared as numbers.
func (s fixture) TestUpdateSale_OlderVersionChangesNothing(t *testing.T) {
	sale := onSale(10, 5)
	sale.Version = 9
	s.load(sale)
	closed, older := sale, sale
	closed.Version, closed.Status = 11, seckill.Closed
	older.Version, older.PerBuyerLimit = 10, 1
	for _, sale := range []seckill.Sale{closed, older, older, closed} {
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
	closed := begun
	closed.Version, closed.Status = 5, seckill.Closed
	require.ErrorIs(t, s.UpdateSale(t.Context(), closed), seckill.ErrNotLoaded)
	require.False(t, must.Get(s.loadPages(begun, pagesOf()))(t))
	begun = closed
	begun.Epoch, begun.Version = 3, 6
	require.True(t, must.Get(s.loadPages(begun, pagesOf()))(t))
	require.Equal(t, seckill.Closed, s.view().Status)
}

// TestLoad_RejectsAnEpochBegunBeforeShut checks that a delayed first load does not open the gate
// during a rebuild that began later.
func (s fixture) TestLoad_RejectsAnEpochBegunBeforeShut(t *testing.T) {
	must.Get(s.Shut(t.Context(), goods, 1))(t)
	must.Get(s.Shut(t.Context(), goods, 0))(t) // by a rebuild that slept
	slow := onSale(10, 5)
	require.False(t, must.Get(s.loadPages(slow, pagesOf()))(t))
	_, err := s.View(t.Context(), goods)
	require.ErrorIs(t, err, seckill.ErrNotLoaded)
	slow.Epoch = 2
	s.load(slow)
}

// held returns an order of one unit of each of n buyers.
func held(n int) []order.Held {
	orders := make([]order.Held, n)
	for i := range orders {
		orders[i] = order.Held{
			BuyerID: fmt.Sprint(int64(i)), OrderSn: fmt.Sprintf("sn%d", i), Quantity: 1,
		}
	}
	return orders
}

// stageKey returns the key of the only load under way; "" if there is none.
func (s fixture) stageKey() string {
	s.t.Helper()
	node := must.Get(s.masterOf(s.t.Context(), keysOf(goods)))(s.t)
	found := must.Get(node.Keys(s.t.Context(), keysOf(goods).stage("*")).Result())(s.t)
	require.LessOrEqual(s.t, len(found), 1)
	return strings.Join(found, "")
}

// TestLoad_RejectsAnIncompleteStage checks that a load fails if Redis was emptied after it staged
// some of the buyers: their orders would be forgotten. Nothing is left of the staged ones. A sale
// without orders is no exception: its version and its fence are gone as well.
func (s fixture) TestLoad_RejectsAnIncompleteStage(t *testing.T) {
	const pages = 4
	sale, orders := onSale(10, 5), held(2*pages)
	loaded, err := s.loadPages(sale, func(func([]order.Held, error) bool) {
		require.NoError(t, s.client.Unlink(t.Context(), s.stageKey()).Err())
	})
	require.NoError(t, err)
	require.False(t, loaded, "emptied before the first page")
	loaded, err = s.loadPages(sale, func(func([]order.Held, error) bool) {
		require.NoError(t, s.stageOrders(t.Context(), s.stageKey(), 2, orders))
	})
	require.NoError(t, err)
	require.False(t, loaded, "a batch more than the load has staged")
	require.Empty(t, s.stageKey())
	for emptiedAt := 1; emptiedAt <= pages; emptiedAt++ {
		loaded, err := s.loadPages(sale, func(yield func([]order.Held, error) bool) {
			staged := 0
			for page, err := range pagesOf(orders...) {
				if !yield(page, err) {
					return
				}
				if staged++; staged == emptiedAt {
					require.NoError(t, s.client.Unlink(t.Context(), s.stageKey()).Err())
				}
			}
		})
		require.NoError(t, err)
		require.False(t, loaded, "emptied after page %d", emptiedAt)
		require.Empty(t, s.stageKey())
	}
	v, err := s.View(t.Context(), goods)
	require.ErrorIs(t, err, seckill.ErrNotLoaded)
	require.False(t, v.Now.IsZero(), "a load needs Redis' clock")
	s.load(sale, orders...)
}

// lossyStages loses the first call of batch 2 and the first answer of batch 3 of a staged load.
type lossyStages struct {
	redis.Hook
	lost map[any]bool
}

func (l lossyStages) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l lossyStages) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l lossyStages) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args() // EVALSHA, hash, 1, key, number of the batch
		if len(args) < 5 || !strings.Contains(fmt.Sprint(args[3]), ":stage:") || l.lost[args[4]] {
			return next(ctx, cmd)
		}
		if args[4] == 3 {
			_ = next(ctx, cmd)
		}
		if args[4] == 2 || args[4] == 3 {
			l.lost[args[4]] = true
			cmd.SetErr(os.ErrDeadlineExceeded)
			return os.ErrDeadlineExceeded
		}
		return next(ctx, cmd)
	}
}

// TestLoad_OutlivesLostCalls checks that a load with many batches does not fail with one call.
func (s fixture) TestLoad_OutlivesLostCalls(t *testing.T) {
	s.client.AddHook(lossyStages{lost: map[any]bool{}})
	sale := onSale(10, 5)
	sale.Stock -= 6
	orders := make([]order.Held, 6) // in three batches
	for i := range orders {
		buyer, sn := fmt.Sprint(i%2), fmt.Sprint("sn", i)
		orders[i] = order.Held{BuyerID: buyer, OrderSn: sn, Quantity: 1}
	}
	s.load(sale, orders...)
	require.Empty(t, must.Get(s.NotHeld(t.Context(), sale.GoodsID, orders))(t))
}

// TestLoad_TakesNoOrdersOfAnotherLoad checks two loads of one epoch at the same time. MySQL has
// lost the epoch of the first in a failover, and begun it again for the second.
func (s fixture) TestLoad_TakesNoOrdersOfAnotherLoad(t *testing.T) {
	page := func(buyer, sn string) []order.Held {
		return []order.Held{{BuyerID: buyer, OrderSn: sn, Quantity: 1}}
	}
	sale := onSale(10, 5)
	first := must.Get(s.loadPages(sale, func(yield func([]order.Held, error) bool) {
		second := must.Get(s.loadPages(sale, func(ofSecond func([]order.Held, error) bool) {
			yield(page("9", "lost"), nil)
			ofSecond(page("7", "sn1"), nil)
		}))(t)
		require.True(t, second)
	}))(t)
	require.False(t, first, "the second has loaded the epoch")
	require.Equal(t, map[string]string{"7": "1 sn1:1"},
		s.client.HGetAll(t.Context(), keysOf(goods).buyers()).Val())
}

// TestLoad_TakesAnyBuyerID checks that no id of a buyer is a name that the scripts use themselves.
func (s fixture) TestLoad_TakesAnyBuyerID(t *testing.T) {
	orders, want := []order.Held{}, map[string]string{}
	for i, id := range []string{"batches", "1", "gate", "epoch", "!", "~", "b1", "nil", "false"} {
		sn := fmt.Sprint("sn", i)
		orders = append(orders, order.Held{BuyerID: id, OrderSn: sn, Quantity: 1})
		want[id] = "1 " + sn + ":1"
	}
	s.load(onSale(10, 5), orders...)
	require.Equal(t, want, s.client.HGetAll(t.Context(), keysOf(goods).buyers()).Val())
}

// TestLoad_StagesAPageBeforeItReadsTheNext checks that a load needs the memory of one page.
func (s fixture) TestLoad_StagesAPageBeforeItReadsTheNext(t *testing.T) {
	sale, page := onSale(10, 5), make([]order.Held, 1)
	loaded, err := s.loadPages(sale, func(yield func([]order.Held, error) bool) {
		for i := range int64(5) {
			fields := s.client.HLen(t.Context(), s.stageKey()).Val()
			require.Equal(t, i, fields-1, "one field counts the batches")
			page[0] = order.Held{BuyerID: fmt.Sprint(i), OrderSn: "sn", Quantity: 1}
			require.True(t, yield(page, nil))
		}
	})
	require.NoError(t, err)
	require.True(t, loaded)
}

// TestLoad_ReadsNoPageForAnotherMaster checks that a load ends at the first batch after a failover
// to a replica that has all batches so far. It leaves nothing.
func (s fixture) TestLoad_ReadsNoPageForAnotherMaster(t *testing.T) {
	loaded, err := s.loadPages(onSale(10, 5), func(yield func([]order.Held, error) bool) {
		require.True(t, yield(held(1), nil))
		s.opts.Lease = "another"
		require.False(t, yield(held(2), nil))
	})
	require.NoError(t, err)
	require.False(t, loaded)
	require.Empty(t, s.stageKey())
}

// lostLoads loses each call of the load script.
type lostLoads struct{ redis.Hook }

func (lostLoads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (lostLoads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (lostLoads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 2 && args[2] == 6 { // EVALSHA, hash, number of keys
			cmd.SetErr(os.ErrDeadlineExceeded)
			return os.ErrDeadlineExceeded
		}
		return next(ctx, cmd)
	}
}

// TestLoad_LostCallLeavesNothing checks that a load whose last call was lost leaves no copy of the
// holdings.
func (s fixture) TestLoad_LostCallLeavesNothing(t *testing.T) {
	s.client.AddHook(lostLoads{})
	_, err := s.loadPages(onSale(10, 5), pagesOf(held(3)...))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Empty(t, s.stageKey())
}

// TestLoad_FailsWithItsPages checks that a load ends, and leaves nothing, if MySQL fails.
func (s fixture) TestLoad_FailsWithItsPages(t *testing.T) {
	sale, errDown := onSale(10, 5), errors.New("down")
	_, err := s.loadPages(sale, func(yield func([]order.Held, error) bool) {
		require.True(t, yield(held(1), nil))
		require.False(t, yield(nil, errDown))
	})
	require.ErrorIs(t, err, errDown)
	require.Empty(t, s.stageKey())
}

// TestStageOrders_CountARepeatedBatchOnce checks that a batch that is sent again, because its
// answer was lost, changes nothing.
func (s fixture) TestStageOrders_CountARepeatedBatchOnce(t *testing.T) {
	key := keysOf(goods).stage("a load")
	orders := []order.Held{
		{BuyerID: "7", OrderSn: "a", Quantity: 2},
		{BuyerID: "7", OrderSn: "b"},
		{BuyerID: "7", OrderSn: "c", Quantity: 1},
		{BuyerID: "8", OrderSn: "d", Quantity: 1},
	}
	require.ErrorIs(t, s.stageOrders(t.Context(), key, 2, orders[2:]), errNotStaged)
	for _, number := range []int{1, 1, 2, 1, 2} {
		batch := orders[2*number-2 : 2*number]
		require.NoError(t, s.stageOrders(t.Context(), key, number, batch))
	}
	lease := must.Get(s.Lease(t.Context(), goods))(t).ID
	require.Equal(t, map[string]string{"7": "3 a:2 b:0 c:1", "8": "1 d:1", " ": "2 " + lease},
		s.client.HGetAll(t.Context(), key).Val())
	require.Positive(t, s.client.TTL(t.Context(), key).Val())
}

// TestLoad_TakesLargePages checks a page of more orders than one call stages.
func (s fixture) TestLoad_TakesLargePages(t *testing.T) {
	orders := held(2*stageBatch + 1)
	sale := onSale(2*stageBatch+1, 1)
	sale.Stock = 0
	loaded, err := s.loadPages(sale, func(yield func([]order.Held, error) bool) {
		require.True(t, yield(orders, nil))
	})
	require.NoError(t, err)
	require.True(t, loaded)
	require.EqualValues(t, len(orders), s.client.HLen(t.Context(), keysOf(goods).buyers()).Val())
	require.Equal(t, "1 sn7:1", s.client.HGet(t.Context(), keysOf(goods).buyers(), "7").Val())
	require.Negative(t, s.client.TTL(t.Context(), keysOf(goods).buyers()).Val())
}

// TestNotHeld_ComparesNumbersAndUnits checks that an order counts as held only with its own number
// and units, and that final orders need not be there.
func (s fixture) TestNotHeld_ComparesNumbersAndUnits(t *testing.T) {
	orders := held(stageBatch + 1)
	sale := onSale(stageBatch+1, 2)
	s.load(sale, orders...)
	absent := append(orders,
		order.Held{BuyerID: "1", OrderSn: "sn", Quantity: 1},
		order.Held{BuyerID: "1", OrderSn: "n1", Quantity: 1},
		order.Held{BuyerID: "2", OrderSn: "sn1", Quantity: 1},
		order.Held{BuyerID: "3", OrderSn: "sn3", Quantity: 11},
		order.Held{BuyerID: fmt.Sprint(-1), OrderSn: "none", Quantity: 1},
		order.Held{BuyerID: "1", OrderSn: "final"})
	require.Equal(t, []string{"sn", "n1", "sn1", "sn3", "none"},
		must.Get(s.NotHeld(t.Context(), goods, absent))(t))
	s.client.Unlink(t.Context(), keysOf(goods).buyers())
	require.Len(t, must.Get(s.NotHeld(t.Context(), goods, orders))(t), len(orders))
}

// TestLoad_RejectsAnOpenGate checks that a load does not overwrite a sale with an open gate. A
// rebuild shuts the gate on one master, and another is promoted. A delayed load opens the gate
// there, and a buyer reserves. The rebuild must not drop that reservation, because it has not
// drained it.
func (s fixture) TestLoad_RejectsAnOpenGate(t *testing.T) {
	s.load(onSale(10, 5))
	s.reserve(reservationOf(1, 7, 2))
	next := onSaleIn(2, 10, 5)
	require.False(t, must.Get(s.loadPages(next, pagesOf()))(t))
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
		{OrderSn: "late", BuyerID: "7", Quantity: 1}, {OrderSn: "other", BuyerID: "8", Quantity: 1},
	}
	adopted := must.Get(s.Adopt(t.Context(), goods, 1, 2, late))(t)
	require.Equal(t, map[string]int64{"late": 0, "other": 1}, adopted)
	late[0].OrderSn = "next"
	adopted = must.Get(s.Adopt(t.Context(), goods, 1, 3, late))(t)
	require.Equal(t, map[string]int64{"next": 1, "other": 1}, adopted,
		"the limit was higher once")
	require.EqualValues(t, 6, s.view().Available)
}
