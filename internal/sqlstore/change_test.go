package sqlstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/order/retention"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

var noKey salechange.IdempotencyKey

// mustChange changes a sale and requires success.
func (h fixture) mustChange(goodsID int64, c salechange.Change) inventory.BegunChange {
	h.t.Helper()
	return must.Get(h.Change(h.t.Context(), goodsID, c, noKey, today))(h.t)
}

// cutting exposes a sale of ten units and begins a cut of four units.
func (h fixture) cutting() (seckill.Sale, inventory.StockCut) {
	h.t.Helper()
	sale := h.exposed(10, 5)
	return sale, *h.mustChange(sale.GoodsID, salechange.Change{StockDelta: -4}).Cut
}

// endCut passes Redis' result to the store. It requires the state of the cut and the sale's total
// afterwards.
func (h fixture) endCut(
	cut inventory.StockCut, said order.MoveResult, state inventory.CutState, total int64,
) (inventory.StockCut, seckill.Sale) {
	h.t.Helper()
	ended, after, err := h.EndCut(h.t.Context(), cut, said, today)
	require.NoError(h.t, err)
	require.Equal(h.t, state, ended.State)
	require.Equal(h.t, total, after.Total)
	return ended, after
}

// TestChange_AppliesToADraftAtOnce checks that a change of a draft applies at once, without a stock
// move or a stock cut.
func (h fixture) TestChange_AppliesToADraftAtOnce(t *testing.T) {
	sale := h.draft(1, 10, 3)
	b := h.mustChange(sale.GoodsID, salechange.Change{
		Title: new("tea"), Price: new(int64(5)), EndAt: new(today.Add(2 * time.Hour)),
		StockDelta: -4, Rate: salechange.RateChange{PermitsPerSecond: new(0.5)},
	})
	require.Empty(t, b.Moves)
	require.Nil(t, b.Cut)
	kept := h.sale(sale.GoodsID)
	require.Equal(t, kept, b.Sale)
	require.EqualValues(t, []int64{6, 6, 5, 3},
		[]int64{kept.Total, kept.Stock, kept.Price, kept.PerBuyerLimit})
	require.Equal(t, seckill.Rate{
		Algorithm: "reserve", PermitsPerSecond: 0.5, MaxBurstSeconds: 1, MaxWaitMillis: 1000,
	}, kept.Rate)
	h.requireBalanced(sale.GoodsID)
}

// TestSaleDetails_AreKept checks the details of a sale and that a merchant's own ids are unique.
// Another merchant may have the same.
func (h fixture) TestSaleDetails_AreKept(t *testing.T) {
	n := newSale(10, 1)
	n.Details = seckill.Details{
		Description: "茶\n", ImageURL: "https://example.com/a", ExternalID: "sku-1", Currency: "EUR",
		Metadata: seckill.MetadataOf(map[string]string{"a": "b"}),
	}
	sale := n.Draft("1", today)
	must.Get(h.CreateSale(t.Context(), sale, noKey))(t)
	require.Equal(t, n.Details, h.sale(sale.GoodsID).Details)
	_, err := h.CreateSale(t.Context(), n.Draft("1", today), noKey)
	requireConflict(t, err)
	other := must.Get(h.CreateSale(t.Context(), n.Draft("2", today), noKey))(t)
	h.mustChange(other.GoodsID, salechange.Change{ExternalID: new("SKU-1"), Metadata: new("")})
	require.Equal(t, "SKU-1", h.sale(other.GoodsID).Details.ExternalID)
	third := h.draft(1, 1, 1)
	_, err = h.Change(t.Context(), third.GoodsID,
		salechange.Change{ExternalID: new("sku-1")}, noKey, today)
	requireConflict(t, err)
	h.mustChange(sale.GoodsID, salechange.Change{ExternalID: new("")})
	h.mustChange(third.GoodsID, salechange.Change{ExternalID: new("sku-1")})
}

// TestChange_KeepsTheRebuildAndTheOpening checks that a merchant's change keeps the columns that
// rebuilds and renewals write without a new version of the row.
func (h fixture) TestChange_KeepsTheRebuildAndTheOpening(t *testing.T) {
	sale := h.exposed(10, 1)
	others := map[string]any{"rebuild_token": 7, "opened_on": "a"}
	require.NoError(t, h.read(t.Context()).Model(&saleRow{}).
		Where("goods_id = ?", sale.GoodsID).Updates(others).Error)
	h.mustChange(sale.GoodsID, salechange.Change{Description: new("green")})
	row := must.Get(findSale(h.read(t.Context()), sale.GoodsID))(t)
	require.Equal(t, "green 7 a",
		fmt.Sprint(row.Description, " ", row.RebuildToken, " ", row.OpenedOn))
}

// TestChange_RaiseOfAnExposedSaleWritesAStockMove checks that added units of an exposed sale become
// a stock move for Redis. A new title is refused.
func (h fixture) TestChange_RaiseOfAnExposedSaleWritesAStockMove(t *testing.T) {
	sale := h.exposed(10, 5)
	h.writeAll(sale.GoodsID, h.line(sale, 1, 4))
	b := h.mustChange(sale.GoodsID, salechange.Change{StockDelta: 7, PerBuyerLimit: new(int64(6))})
	require.Equal(t, []order.StockMove{b.Moves[0]}, h.moves(sale.GoodsID))
	require.EqualValues(t, 7, b.Moves[0].Quantity)
	require.Equal(t, order.MoveDelta, b.Moves[0].Kind)
	require.Equal(t, sale.Epoch, b.Moves[0].Epoch)
	require.EqualValues(t, []int64{17, 13, 6},
		[]int64{b.Sale.Total, b.Sale.Stock, b.Sale.MaxPerBuyerLimit})
	h.requireBalanced(sale.GoodsID)
	_, err := h.Change(t.Context(), sale.GoodsID, salechange.Change{Title: new("x")}, noKey, today)
	requireConflict(t, err)
}

// TestEndCut_AppliesOnceRedisReleasedTheUnits checks that a cut reduces the total, once, after
// Redis released the units.
func (h fixture) TestEndCut_AppliesOnceRedisReleasedTheUnits(t *testing.T) {
	sale := h.exposed(10, 5)
	cut := h.mustChange(sale.GoodsID,
		salechange.Change{StockDelta: -4, EndAt: new(today.Add(3 * time.Hour))}).Cut
	require.EqualValues(t, 10, h.sale(sale.GoodsID).Total,
		"the total stays until Redis releases the units")
	h.requireUnreleased(sale.GoodsID, 1, today)
	require.Equal(t, []inventory.StockCut{*cut},
		must.Get(h.OpenCuts(t.Context(), today.Add(time.Minute), "", 10))(t),
		"the open cut holds everything that EndCut needs")
	for range 2 {
		_, after := h.endCut(*cut, order.MoveApplied, inventory.CutDone, 6)
		require.EqualValues(t, 6, after.Stock)
		require.Equal(t, today.Add(3*time.Hour), after.EndAt)
	}
	require.Empty(t, h.moves(sale.GoodsID))
	h.requireBalanced(sale.GoodsID)
	h.requireUnreleased(sale.GoodsID, 0, time.Time{})
}

// TestChange_WaitsForACutWithFields checks that no change of fields is answered while the fields of
// an open cut would replace them later. Cuts and raises of the stock do not wait, nor does any
// change for a cut of the stock alone.
func (h fixture) TestChange_WaitsForACutWithFields(t *testing.T) {
	sale := h.exposed(10, 5)
	end := func(hours time.Duration) *time.Time { return new(today.Add(hours * time.Hour)) }
	stockOnly := h.mustChange(sale.GoodsID, salechange.Change{StockDelta: -1}).Cut
	cut := h.mustChange(sale.GoodsID, salechange.Change{StockDelta: -2, EndAt: end(3)}).Cut
	for _, c := range []salechange.Change{{EndAt: end(2)}, {StockDelta: -1, EndAt: end(2)}} {
		_, err := h.Change(t.Context(), sale.GoodsID, c, noKey, today)
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "%v", err)
	}
	h.mustChange(sale.GoodsID, salechange.Change{StockDelta: 4})
	h.endCut(*cut, order.MoveApplied, inventory.CutDone, 12)
	h.mustChange(sale.GoodsID, salechange.Change{EndAt: end(2)})
	_, after := h.endCut(*stockOnly, order.MoveApplied, inventory.CutDone, 11)
	require.Equal(t, *end(2), after.EndAt)
}

// TestEndCut_RefusalUndoesTheCut checks that a refusal by Redis undoes the cut for good. The same
// request then begins another cut.
func (h fixture) TestEndCut_RefusalUndoesTheCut(t *testing.T) {
	sale := h.exposed(10, 5)
	by := seckill.Actor{ID: "1", Role: seckill.Merchant}
	begin := func() inventory.StockCut {
		return *must.Get(h.Change(seckill.WithActor(t.Context(), by), sale.GoodsID,
			salechange.Change{StockDelta: -4},
			salechange.IdempotencyKey{ActorID: by.ID, Key: "k", Hash: "h"}, today))(t).Cut
	}
	cut := begin()
	h.endCut(cut, order.CutTooLarge, inventory.CutUndone, 10)
	h.endCut(cut, order.MoveApplied, inventory.CutUndone, 10) // a later result changes nothing
	again := begin()
	require.NotEqual(t, cut.ID, again.ID)
	h.endCut(again, order.MoveApplied, inventory.CutDone, 6)
}

// TestEndCut_RenewsACutOfAnOlderEpoch checks that a result of an older epoch is void. The cut then
// gets the new epoch and stays open.
func (h fixture) TestEndCut_RenewsACutOfAnOlderEpoch(t *testing.T) {
	sale, cut := h.cutting()
	snap := h.beginEpoch(sale.GoodsID)
	require.EqualValues(t, 10, snap.Stock,
		"the rebuild loads the units of the open cut again")
	renewed, _ := h.endCut(cut, order.MoveApplied, inventory.CutOpen, 10)
	require.Equal(t, snap.Epoch, renewed.Epoch)
	h.endCut(cut, order.CutTooLarge, inventory.CutOpen, 10) // a result of the old epoch is void
	h.endCut(renewed, order.MoveCovered, inventory.CutOpen, 10)
	h.endCut(renewed, order.MoveApplied, inventory.CutDone, 6)
}

// TestEndCut_ClosedSaleReturnsTheUnits checks that a cut of a closed sale is undone and that a
// stock move returns its units to Redis.
func (h fixture) TestEndCut_ClosedSaleReturnsTheUnits(t *testing.T) {
	sale, cut := h.cutting()
	must.Get(h.CloseSale(t.Context(), sale.GoodsID, today))(t)
	h.endCut(cut, order.MoveApplied, inventory.CutUndone, 10)
	moves := h.moves(sale.GoodsID)
	require.Len(t, moves, 1)
	require.EqualValues(t, 4, moves[0].Quantity)
}

// eightTimes calls a function eight times concurrently and returns the values.
func eightTimes[T any](t *testing.T, call func(i int) (T, error)) []T {
	t.Helper()
	var g errgroup.Group
	values := make([]T, 8)
	for i := range values {
		g.Go(func() (err error) {
			values[i], err = call(i)
			return err
		})
	}
	require.NoError(t, g.Wait())
	return values
}

// TestChange_SameKeyChangesOnce checks that concurrent requests with one idempotency key change the
// sale once. The key belongs to its actor, rejects another body and expires after a day.
func (h fixture) TestChange_SameKeyChangesOnce(t *testing.T) {
	sale := h.exposed(10, 5)
	raise := func(units int64, key salechange.IdempotencyKey, now time.Time) (int64, error) {
		c := salechange.Change{StockDelta: units}
		b, err := h.Change(t.Context(), sale.GoodsID, c, key, now)
		return b.Sale.Total, err
	}
	key := salechange.IdempotencyKey{ActorID: "1", Key: "k", Hash: "h"}
	totals := eightTimes(t, func(int) (int64, error) { return raise(5, key, today) })
	require.Equal(t, []int64{15, 15, 15, 15, 15, 15, 15, 15}, totals,
		"every request gets the first answer")
	require.EqualValues(t, 15, h.sale(sale.GoodsID).Total)
	require.Len(t, h.moves(sale.GoodsID), 1)

	other := key
	other.Hash = "another body"
	_, err := raise(6, other, today)
	requireConflict(t, err)
	other.ActorID = "2" // another actor may use the same key
	must.Get(raise(6, other, today))(t)
	must.Get(raise(5, key, today.Add(25*time.Hour)))(t)
	require.EqualValues(t, 26, h.sale(sale.GoodsID).Total, "a key expires after a day")
}

// TestChange_KeepsLongestMetadata changes the metadata to the longest that a sale may have. The
// audit log and the idempotency key have it as a JSON text within JSON, which escapes it twice.
func (h fixture) TestChange_KeepsLongestMetadata(t *testing.T) {
	sale := h.draft(1, 10, 5)
	pairs := map[string]string{}
	for i := range 20 {
		pairs[fmt.Sprint(i)] = strings.Repeat("<", 500)
	}
	c := salechange.Change{Metadata: new(seckill.MetadataOf(pairs))}
	for range 2 {
		b, err := h.Change(t.Context(), sale.GoodsID, c,
			salechange.IdempotencyKey{ActorID: "1", Key: "k", Hash: "h"}, today)
		require.NoError(t, err)
		require.Equal(t, pairs, b.Sale.Details.Pairs())
	}
}

// TestCreateSale_SameKeyCreatesOneSale checks that concurrent requests with one idempotency key
// create one sale.
func (h fixture) TestCreateSale_SameKeyCreatesOneSale(t *testing.T) {
	create := func(title string) (seckill.Sale, error) {
		sale := newSale(5, 1)
		sale.Title = title
		return h.CreateSale(t.Context(), sale.Draft("9", today),
			salechange.IdempotencyKey{ActorID: "9", Key: "k", Hash: "h"})
	}
	made := eightTimes(t, func(i int) (seckill.Sale, error) { return create(fmt.Sprint(i)) })
	for _, sale := range made {
		require.Equal(t, made[0], sale)
	}
	require.Equal(t, made[:1], must.Get(h.SalesOf(t.Context(), "9", 0, 100))(t))
	must.Get(h.Forget(t.Context(), retention.Keys, today.Add(time.Second), 10))(t)
	require.NotEqual(t, made[0], must.Get(create("x"))(t))
}

// TestChange_RepeatedCutContinuesTheFirst checks that a repeated request for a cut returns the cut
// of the first request, and its result afterwards.
func (h fixture) TestChange_RepeatedCutContinuesTheFirst(t *testing.T) {
	sale := h.exposed(10, 5)
	key := salechange.IdempotencyKey{ActorID: "1", Key: "k", Hash: "h"}
	begin := func() inventory.BegunChange {
		ctx := seckill.WithActor(t.Context(),
			seckill.Actor{ID: key.ActorID, Role: seckill.Merchant})
		cut := salechange.Change{StockDelta: -4}
		return must.Get(h.Change(ctx, sale.GoodsID, cut, key, today))(t)
	}
	first, second := begin(), begin()
	require.Equal(t, first.Cut, second.Cut)
	_, after := h.endCut(*second.Cut, order.MoveApplied, inventory.CutDone, 6)
	third := begin()
	require.Nil(t, third.Cut)
	require.Equal(t, after, third.Sale)
}

// TestAuditTrail_ListsActorAndChangedFields checks that the audit log lists each change with its
// actor and the changed fields, newest first.
func (h fixture) TestAuditTrail_ListsActorAndChangedFields(t *testing.T) {
	ctx := seckill.WithActor(t.Context(), seckill.Actor{ID: "7", Role: seckill.Merchant})
	sale := h.draft(7, 10, 3) // the context has no actor
	must.Get(h.Change(ctx, sale.GoodsID,
		salechange.Change{Price: new(int64(5)), StockDelta: 2}, noKey, today))(t)
	_, err := h.Change(ctx, sale.GoodsID, salechange.Change{Price: new(int64(-5))}, noKey, today)
	require.Error(t, err)
	before := h.sale(sale.GoodsID)
	same := h.mustChange(sale.GoodsID, salechange.Change{Price: new(int64(5))})
	require.Equal(t, []seckill.Sale{before, before},
		[]seckill.Sale{same.Sale, h.sale(sale.GoodsID)})
	must.Get(h.BeginEpoch(ctx, sale.GoodsID, rebuild.FirstToken, at(today)))(t)
	must.Get(h.CloseSale(ctx, sale.GoodsID, today.Add(time.Minute)))(t)
	log := h.auditOf(sale.GoodsID, 10)
	require.Len(t, log, 4, "the audit log holds no refused change, and none of nothing")
	require.Equal(t, []salechange.Action{
		salechange.ActClose, salechange.ActExpose, salechange.ActChange, salechange.ActCreate,
	}, []salechange.Action{log[0].Action, log[1].Action, log[2].Action, log[3].Action})
	require.Equal(t, map[string]any{"price": 1999.0, "stock": 10.0}, log[2].Was)
	require.Equal(t, map[string]any{"price": 5.0, "stock": 12.0}, log[2].Became)
	require.Equal(t, "7", log[2].ActorID)
	require.Equal(t, seckill.Merchant, log[2].Role)
	require.Equal(t, map[string]any{"status": "exposed"}, log[0].Was)
	require.Empty(t, log[3].Was)
	f := salechange.AuditFilter{GoodsID: sale.GoodsID}
	require.Equal(t, log[3:], must.Get(h.AuditTrail(t.Context(), f, log[2].ID, 10))(t))
}

// TestAuditTrail_OfAMerchant checks that a merchant's log has the entries of the merchant's sales
// by anybody, and those of the merchant's actions. Each is there once, newest first, in pages.
func (h fixture) TestAuditTrail_OfAMerchant(t *testing.T) {
	ctx := seckill.WithActor(t.Context(), seckill.Actor{ID: "7", Role: seckill.Merchant})
	deleted, kept := h.draft(7, 10, 3), h.draft(7, 10, 3)
	h.mustChange(h.draft(8, 10, 3).GoodsID, salechange.Change{StockDelta: 1})
	require.NoError(t, h.DeleteDraft(ctx, deleted.GoodsID, noKey, minutes(1)))
	must.Get(h.Change(ctx, kept.GoodsID, salechange.Change{StockDelta: 1}, noKey, minutes(2)))(t)
	byOperator := seckill.WithActor(t.Context(), seckill.Actor{ID: "9", Role: seckill.Operator})
	must.Get(h.Change(byOperator, kept.GoodsID, salechange.Change{StockDelta: 1}, noKey,
		minutes(3)))(t)
	f, before := salechange.AuditFilter{MerchantID: "7"}, ""
	var at []time.Time
	for range 3 {
		page := must.Get(h.AuditTrail(t.Context(), f, before, 1))(t)
		require.Len(t, page, 1)
		at, before = append(at, page[0].At), page[0].ID
	}
	require.Equal(t, []time.Time{minutes(3), minutes(2), minutes(1)}, at)
	rest := must.Get(h.AuditTrail(t.Context(), f, before, 10))(t)
	require.Len(t, rest, 1, "kept was created; nobody is known to have created deleted")
}

// TestAuditTrail_FollowsTheDatabasesClock checks that entries come in the order of their times, and
// not of the clocks of the nodes that write them.
func (h fixture) TestAuditTrail_FollowsTheDatabasesClock(t *testing.T) {
	for _, after := range []time.Duration{3, 1, 2} {
		must.Get(h.Change(t.Context(), h.draft(7, 10, 3).GoodsID, salechange.Change{StockDelta: 1},
			noKey, today.Add(after*time.Minute)))(t)
	}
	f := salechange.AuditFilter{Action: salechange.ActChange}
	log := must.Get(h.AuditTrail(t.Context(), f, "", 3))(t)
	require.Equal(t, []time.Time{minutes(3), minutes(2), minutes(1)},
		[]time.Time{log[0].At, log[1].At, log[2].At})
}

// TestDeleteDraft_DeletesOnlyDrafts checks that a draft can be deleted and an exposed sale cannot.
// A repeated request with the same key succeeds.
func (h fixture) TestDeleteDraft_DeletesOnlyDrafts(t *testing.T) {
	draft, sale := h.draft(1, 10, 3), h.exposed(10, 3)
	require.NoError(t, h.DeleteDraft(t.Context(), draft.GoodsID, noKey, today))
	require.ErrorIs(t, h.DeleteDraft(t.Context(), draft.GoodsID, noKey, today),
		seckill.ErrNoSuchGoods)
	requireConflict(t, h.DeleteDraft(t.Context(), sale.GoodsID, noKey, today))
	require.Equal(t, salechange.ActDelete, h.auditOf(draft.GoodsID, 1)[0].Action,
		"the audit log records the deletion")

	again, key := h.draft(1, 10, 3), salechange.IdempotencyKey{ActorID: "1", Key: "away", Hash: "h"}
	_, known, err := h.Answered(t.Context(), key, today)
	require.NoError(t, err)
	require.False(t, known)
	for range 2 {
		require.NoError(t, h.DeleteDraft(t.Context(), again.GoodsID, key, today))
	}
	gone, known, err := h.Answered(t.Context(), key, today)
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, again.GoodsID, gone.GoodsID)
}
