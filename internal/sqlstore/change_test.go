package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

var noKey salechange.IdempotencyKey

// changed changes a sale, which must succeed.
func (h fixture) mustChange(goodsID int64, c salechange.Change) inventory.BegunChange {
	h.t.Helper()
	b := must.Get(h.Change(h.t.Context(), goodsID, c, noKey, today))(h.t)
	return b
}

func (h fixture) sale(goodsID int64) seckill.Sale {
	h.t.Helper()
	sale := must.Get(h.Sale(h.t.Context(), goodsID))(h.t)
	return sale
}

func TestChange_AppliesToADraftAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.draft(1, 10, 3)
		b := h.mustChange(sale.GoodsID, salechange.Change{
			Title: new(
				"tea",
			), Price: new(int64(5)), EndAt: new(today.Add(2 * time.Hour)), StockDelta: -4,
			Rate: salechange.RateChange{PermitsPerSecond: new(0.5)},
		})
		require.Empty(t, b.Moves)
		require.Nil(t, b.Cut)
		kept := h.sale(sale.GoodsID)
		require.Equal(t, kept, b.Sale)
		require.EqualValues(t, []int64{6, 6, 5, 3},
			[]int64{kept.Total, kept.Stock, kept.Price, kept.PerBuyerLimit})
		require.Equal(
			t,
			seckill.Rate{
				Algorithm: "reserve", PermitsPerSecond: 0.5, MaxBurstSeconds: 1,
				MaxWaitMillis: 1000,
			},
			kept.Rate,
		)
		h.requireBalanced(sale.GoodsID)
	})
}

func TestChange_RaiseOfAnExposedSaleWritesAStockMove(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 5)
		h.writeAll(sale.GoodsID, h.line(sale, 1, 4))
		b := h.mustChange(sale.GoodsID,
			salechange.Change{StockDelta: 7, PerBuyerLimit: new(int64(6))})
		require.Equal(t, []order.StockMove{b.Moves[0]}, h.moves(sale.GoodsID))
		require.EqualValues(t, 7, b.Moves[0].Quantity)
		require.Equal(t, order.MoveDelta, b.Moves[0].Kind)
		require.Equal(t, sale.Epoch, b.Moves[0].Epoch)
		require.EqualValues(t, []int64{17, 13, 6},
			[]int64{b.Sale.Total, b.Sale.Stock, b.Sale.MaxPerBuyerLimit})
		h.requireBalanced(sale.GoodsID)
		_, err := h.Change(t.Context(), sale.GoodsID, salechange.Change{Title: new("x")}, noKey,
			today)
		requireConflict(t, err)
	})
}

func TestEndCut_AppliesOnceRedisReleasedTheUnits(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 5)
		cut := h.mustChange(sale.GoodsID,
			salechange.Change{StockDelta: -4, EndAt: new(today.Add(3 * time.Hour))}).Cut
		require.EqualValues(t, 10, h.sale(sale.GoodsID).Total, "nothing before Redis was asked")
		at := must.Get(h.OldestUnreleasedMove(t.Context(), sale.GoodsID))(t)
		require.Equal(t, today, at)
		require.Equal(t, []inventory.StockCut{*cut},
			must.Get(h.OpenCuts(t.Context(), today.Add(time.Minute), 10))(t),
			"it says all that it takes to finish it")
		for range 2 {
			ended, after, err := h.EndCut(t.Context(), *cut, order.MoveApplied, today)
			require.NoError(t, err)
			require.Equal(t, inventory.CutDone, ended.State)
			require.EqualValues(t, []int64{6, 6}, []int64{after.Total, after.Stock})
			require.Equal(t, today.Add(3*time.Hour), after.EndAt)
		}
		require.Empty(t, h.moves(sale.GoodsID))
		h.requireBalanced(sale.GoodsID)
		at = must.Get(h.OldestUnreleasedMove(t.Context(), sale.GoodsID))(t)
		require.Zero(t, at)
	})
}

func TestEndCut_RefusalUndoesTheCut(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 5)
		cut := h.mustChange(sale.GoodsID, salechange.Change{StockDelta: -4}).Cut
		for _, said := range []order.MoveResult{
			order.CutTooLarge, order.MoveApplied,
		} { // what is undone stays undone
			ended, after, err := h.EndCut(t.Context(), *cut, said, today)
			require.NoError(t, err)
			require.Equal(t, inventory.CutUndone, ended.State)
			require.EqualValues(t, 10, after.Total)
		}
	})
}

func TestEndCut_RenewsACutOfAnOlderEpoch(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 5)
		cut := h.mustChange(sale.GoodsID, salechange.Change{StockDelta: -4}).Cut
		snap := h.beginEpoch(sale.GoodsID)
		require.EqualValues(t, 10, snap.Stock,
			"Redis was built with the units that the old epoch had released")
		renewed, after, err := h.EndCut(t.Context(), *cut, order.MoveApplied, today)
		require.NoError(t, err)
		require.Equal(t, inventory.CutOpen, renewed.State)
		require.Equal(t, snap.Epoch, renewed.Epoch)
		require.EqualValues(t, 10, after.Total)
		stale, _, err := h.EndCut(t.Context(), *cut, order.CutTooLarge, today)
		require.NoError(t, err)
		require.Equal(t, inventory.CutOpen, stale.State, "what was said in the old epoch is void")
		ended, after, err := h.EndCut(t.Context(), renewed, order.MoveApplied, today)
		require.NoError(t, err)
		require.Equal(t, inventory.CutDone, ended.State)
		require.EqualValues(t, 6, after.Total)
	})
}

func TestEndCut_ClosedSaleReturnsTheUnits(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 5)
		cut := h.mustChange(sale.GoodsID, salechange.Change{StockDelta: -4}).Cut
		must.Get(h.CloseSale(t.Context(), sale.GoodsID, today))(t)
		ended, after, err := h.EndCut(t.Context(), *cut, order.MoveApplied, today)
		require.NoError(t, err)
		require.Equal(t, inventory.CutUndone, ended.State)
		require.EqualValues(t, 10, after.Total)
		moves := h.moves(sale.GoodsID)
		require.Len(t, moves, 1)
		require.EqualValues(t, 4, moves[0].Quantity)
	})
}

func TestChange_SameKeyChangesOnce(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 5)
		once := salechange.IdempotencyKey{ActorID: 1, Key: "k", Hash: "h"}
		var g errgroup.Group
		totals := make([]int64, 8)
		for i := range totals {
			g.Go(func() error {
				b, err := h.Change(t.Context(), sale.GoodsID, salechange.Change{StockDelta: 5},
					once, today)
				totals[i] = b.Sale.Total
				return err
			})
		}
		require.NoError(t, g.Wait())
		require.Equal(t, []int64{15, 15, 15, 15, 15, 15, 15, 15}, totals,
			"all hear the first answer")
		require.EqualValues(t, 15, h.sale(sale.GoodsID).Total)
		require.Len(t, h.moves(sale.GoodsID), 1)

		other := once
		other.Hash = "another body"
		_, err := h.Change(t.Context(), sale.GoodsID, salechange.Change{StockDelta: 6}, other,
			today)
		requireConflict(t, err)
		other.ActorID = 2 // another's key of the same name
		must.Get(h.Change(t.Context(), sale.GoodsID, salechange.Change{StockDelta: 6}, other,
			today))(t)
		must.Get(h.Change(t.Context(), sale.GoodsID, salechange.Change{StockDelta: 5}, once,
			today.Add(25*time.Hour)))(t)
		require.EqualValues(t, 26, h.sale(sale.GoodsID).Total, "a key lives a day")
	})
}

func TestCreateSale_SameKeyCreatesOneSale(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		var g errgroup.Group
		made := make([]seckill.Sale, 8)
		for i := range made {
			sale := seckill.NewSale{
				Title: fmt.Sprint(i), Price: 1, Stock: 5, PerBuyerLimit: 1, StartAt: today,
				EndAt: today.Add(time.Hour), Rate: seckill.DefaultRate(),
			}.Draft(9, today)
			g.Go(func() (err error) {
				made[i], err = h.CreateSale(t.Context(), sale,
					salechange.IdempotencyKey{ActorID: 9, Key: "k", Hash: "h"})
				return err
			})
		}
		require.NoError(t, g.Wait())
		for _, sale := range made {
			require.Equal(t, made[0], sale)
		}
		require.Equal(t, made[:1], must.Get(h.SalesOf(t.Context(), 9, 0, 100))(t))
		require.NoError(t, h.ForgetKeys(t.Context(), today.Add(time.Second)))
		require.NotEqual(t, made[0], must.Get(h.CreateSale(
			t.Context(),
			seckill.NewSale{
				Title: "x", Stock: 5, PerBuyerLimit: 1, StartAt: today, EndAt: today.Add(time.Hour),
			}.Draft(9, today),
			salechange.IdempotencyKey{ActorID: 9, Key: "k", Hash: "h"},
		))(t))
	})
}

func TestChange_RepeatedCutContinuesTheFirst(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 5)
		once := salechange.IdempotencyKey{ActorID: 1, Key: "k", Hash: "h"}
		begin := func() inventory.BegunChange {
			ctx := seckill.WithActor(t.Context(),
				seckill.Actor{ID: once.ActorID, Role: seckill.Merchant})
			b := must.Get(h.Change(ctx, sale.GoodsID, salechange.Change{StockDelta: -4}, once,
				today))(t)
			return b
		}
		first, second := begin(), begin()
		require.Equal(t, first.Cut, second.Cut)
		_, after, err := h.EndCut(t.Context(), *second.Cut, order.MoveApplied, today)
		require.NoError(t, err)
		third := begin()
		require.Nil(t, third.Cut)
		require.Equal(t, after, third.Sale)
	})
}

func TestAuditOf_ListsActorAndChangedFields(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		ctx := seckill.WithActor(t.Context(), seckill.Actor{ID: 7, Role: seckill.Merchant})
		sale := h.draft(7, 10, 3) // by the system, without an actor
		must.Get(h.Change(ctx, sale.GoodsID,
			salechange.Change{Price: new(int64(5)), StockDelta: 2}, noKey, today))(t)
		_, err := h.Change(ctx, sale.GoodsID, salechange.Change{Price: new(int64(-5))}, noKey,
			today)
		require.Error(t, err)
		must.Get(h.BeginEpoch(ctx, sale.GoodsID, rebuild.FirstToken, today))(t)
		must.Get(h.CloseSale(ctx, sale.GoodsID, today.Add(time.Minute)))(t)
		log := must.Get(h.AuditOf(t.Context(), sale.GoodsID, "", 10))(t)
		require.Len(t, log, 4, "a refusal is no change")
		require.Equal(
			t,
			[]salechange.Action{
				salechange.ActClose, salechange.ActExpose, salechange.ActChange,
				salechange.ActCreate,
			},
			[]salechange.Action{log[0].Action, log[1].Action, log[2].Action, log[3].Action},
		)
		require.JSONEq(t, `{"price":1999,"stock":10}`, string(log[2].Was))
		require.JSONEq(t, `{"price":5,"stock":12}`, string(log[2].Became))
		require.EqualValues(t, 7, log[2].ActorID)
		require.Equal(t, seckill.Merchant, log[2].Role)
		require.JSONEq(t, `{"status":"exposed"}`, string(log[0].Was))
		require.JSONEq(t, `{}`, string(log[3].Was))
		require.Equal(t, log[3:], must.Get(h.AuditOf(t.Context(), sale.GoodsID, log[2].ID, 10))(t))
	})
}

func TestDeleteDraft_DeletesOnlyDrafts(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		draft, sale := h.draft(1, 10, 3), h.exposed(10, 3)
		require.NoError(t,
			h.DeleteDraft(t.Context(), draft.GoodsID, salechange.IdempotencyKey{}, today))
		require.ErrorIs(t,
			h.DeleteDraft(t.Context(), draft.GoodsID, salechange.IdempotencyKey{}, today),
			seckill.ErrNoSuchGoods)
		requireConflict(t,
			h.DeleteDraft(t.Context(), sale.GoodsID, salechange.IdempotencyKey{}, today))
		require.Equal(t, salechange.ActDelete,
			must.Get(h.AuditOf(t.Context(), draft.GoodsID, "", 1))(t)[0].Action,
			"what it was is kept")

		again, once := h.draft(1, 10, 3), salechange.IdempotencyKey{
			ActorID: 1, Key: "away", Hash: "h",
		}
		_, known, err := h.Answered(t.Context(), once, today)
		require.NoError(t, err)
		require.False(t, known)
		for range 2 {
			require.NoError(t, h.DeleteDraft(t.Context(), again.GoodsID, once, today))
		}
		gone, known, err := h.Answered(t.Context(), once, today)
		require.NoError(t, err)
		require.True(t, known)
		require.Equal(t, again.GoodsID, gone.GoodsID)
	})
}
