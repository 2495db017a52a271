package sqlstore

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestSale_StoresExtremeValues checks that a created sale is read back unchanged, and that an
// unknown goods is an error.
func (h fixture) TestSale_StoresExtremeValues(t *testing.T) {
	sale := h.draft(1<<62, seckill.MaxStock, seckill.MaxPerBuyerLimit)
	sale.GoodsID, sale.Price, sale.Epoch = 1<<63-1, seckill.MaxPrice, 1<<32-1
	sale.Rate.PermitsPerSecond, sale.Rate.MaxBurstSeconds = 0.001, 1.0/3
	sale.Title = "'; DROP TABLE sales; -- \\ \" \x00 𝄞"
	must.Get(h.CreateSale(t.Context(), sale, noKey))(t)
	require.Equal(t, sale, h.sale(sale.GoodsID))
	_, err := h.CreateSale(t.Context(), sale, noKey)
	requireConflict(t, err)
	_, err = h.Sale(t.Context(), 1)
	require.ErrorIs(t, err, seckill.ErrNoSuchGoods)
	_, err = h.Database(t.Context(), 1)
	require.ErrorIs(t, err, seckill.ErrNoSuchGoods)
}

// TestLockSale_ReadsTheWholeRow checks that a row is the same with a lock, which is read without
// GORM, and without one, with and without NULLs.
func (h fixture) TestLockSale_ReadsTheWholeRow(t *testing.T) {
	full := newSale(10, 2).Draft("1", today)
	full.Details = seckill.Details{
		Description: "green", ImageURL: "https://example.org/tea.png", ExternalID: "tea-1",
		Metadata: `{"a":"b"}`, Currency: "EUR",
	}
	must.Get(h.CreateSale(t.Context(), full, noKey))(t)
	h.beginEpoch(full.GoodsID)
	must.Get(h.CloseSale(t.Context(), full.GoodsID, today))(t)
	for _, goodsID := range []int64{h.draft(1, 10, 1).GoodsID, full.GoodsID} {
		row := must.Get(findSale(h.read(t.Context()), goodsID))(t)
		locked := must.Get(inTx(t.Context(), h.Store, "lock a sale",
			func(tx *gorm.DB) (saleRow, error) { return lockSale(tx, goodsID) }))(t)
		require.Equal(t, row, locked)
	}
}

func goodsIDs(sales []seckill.Sale) []int64 {
	return mapSlice(sales, func(s seckill.Sale) int64 { return s.GoodsID })
}

func (h fixture) TestSalesOf_PagesNewestFirst(t *testing.T) {
	var ids []int64 // newest first
	for i := range 7 {
		sale := h.draft(int64(1+i%2), 10, 1)
		ids = append([]int64{sale.GoodsID}, ids...)
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Compare(b, a) })
	var paged []int64
	for below := int64(0); ; below = paged[len(paged)-1] {
		page := must.Get(h.SalesOf(t.Context(), "", below, 3))(t)
		if len(page) == 0 {
			break
		}
		paged = append(paged, goodsIDs(page)...)
	}
	require.Equal(t, ids, paged)
	require.Len(t, must.Get(h.SalesOf(t.Context(), "1", 0, 100))(t), 4)
	exposed := func(below int64, limit int) []int64 {
		return goodsIDs(must.Get(h.ExposedSales(t.Context(), below, limit))(t))
	}
	require.Empty(t, exposed(0, 100))
	h.beginEpoch(ids[2])
	h.beginEpoch(ids[4])
	require.Equal(t, ids[2:3], exposed(0, 1))
	require.Equal(t, ids[4:5], exposed(ids[2], 100))
}

func (h fixture) TestCloseSale_ClosesOnce(t *testing.T) {
	draft := h.draft(1, 10, 1)
	_, err := h.CloseSale(t.Context(), draft.GoodsID, today)
	requireConflict(t, err)
	_, err = h.CloseSale(t.Context(), 1, today)
	require.ErrorIs(t, err, seckill.ErrNoSuchGoods)
	sale := h.exposed(10, 1)
	closed := must.Get(h.CloseSale(t.Context(), sale.GoodsID, today.Add(time.Minute)))(t)
	require.Equal(t, seckill.Closed, closed.Status)
	require.Equal(t, closed,
		must.Get(h.CloseSale(t.Context(), sale.GoodsID, today.Add(time.Hour)))(t),
		"a repeated close changes nothing")
	require.Equal(t, closed, h.sale(sale.GoodsID))
	h.writeOrder(sale, 9) // an order that was taken before the close
}

func (h fixture) TestLiveGoods_ListsExposedAndClosedSales(t *testing.T) {
	ctx, tomorrow := t.Context(), today.Add(24*time.Hour)
	h.draft(1, 10, 1)
	on, closed, retired := h.exposed(10, 1), h.exposed(10, 1), h.exposed(10, 1)
	for _, sale := range []seckill.Sale{closed, retired} {
		must.Get(h.CloseSale(ctx, sale.GoodsID, today))(t)
	}
	require.True(t, h.retire(retired.GoodsID, tomorrow))
	require.Equal(t, []int64{on.GoodsID, closed.GoodsID},
		goodsIDs(must.Get(h.LiveGoods(ctx, nil))(t)))
	for _, sale := range []seckill.Sale{on, closed} {
		bucket := []int64{sale.GoodsID % livesales.Buckets}
		require.Equal(t, []int64{sale.GoodsID}, goodsIDs(must.Get(h.LiveGoods(ctx, bucket))(t)))
	}
	require.Empty(t, must.Get(h.LiveGoods(ctx, []int64{retired.GoodsID % livesales.Buckets}))(t))
}

// TestLiveVersions_ChangeWithTheLiveSales checks every step that changes the row of a live sale, or
// the list of them. Time stands still, so that the versions depend on no clock.
func (h fixture) TestLiveVersions_ChangeWithTheLiveSales(t *testing.T) {
	ctx := t.Context()
	versions := func() map[int64]int64 { return must.Get(h.LiveVersions(ctx))(t) }
	last := versions()
	require.Empty(t, last)
	draft := h.draft(1, 10, 5)
	require.Empty(t, versions(), "a draft is not live")
	retire := func(at any) {
		q := h.db.Exec("UPDATE sales SET retired_at = ? WHERE goods_id = ?", at, draft.GoodsID)
		require.NoError(t, q.Error)
	}
	var sn string
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"expose", func() { h.beginEpoch(draft.GoodsID) }},
		{"order", func() { sn = h.writeOrder(h.sale(draft.GoodsID), 9) }},
		{"cancel", func() { must.Get(h.CancelOne(draft.GoodsID, sn, today))(t) }},
		{"change", func() {
			end := salechange.Change{EndAt: new(today.Add(2 * time.Hour))}
			must.Get(h.Change(ctx, draft.GoodsID, end, noKey, today))(t)
		}},
		{"rebuild", func() { h.beginEpoch(draft.GoodsID) }},
		{"close", func() { must.Get(h.CloseSale(ctx, draft.GoodsID, today))(t) }},
		{"retire", func() { retire(1) }},
		{"a change of the retired sale", func() { retire(nil) }},
	} {
		step.do()
		require.NotEqual(t, last, versions(), step.name)
		last = versions()
	}

	another := h.exposed(10, 1)
	bucket := func(s seckill.Sale) int64 { return s.GoodsID % livesales.Buckets }
	require.Equal(t,
		map[int64]int64{
			bucket(draft): last[bucket(draft)], bucket(another): versions()[bucket(another)],
		},
		versions(), "a sale changes the version of its own bucket")
}

// TestLiveVersions_DifferForAnotherSale checks that a sale that leaves the list while another one
// of its bucket with the same version and epoch enters it is noticed.
func (h fixture) TestLiveVersions_DifferForAnotherSale(t *testing.T) {
	versions := func() map[int64]int64 { return must.Get(h.LiveVersions(t.Context()))(t) }
	leaves := h.exposed(10, 1)
	before := versions()
	enters := leaves.GoodsID + livesales.Buckets
	q := h.db.Exec("UPDATE sales SET goods_id = ? WHERE goods_id = ?", enters, leaves.GoodsID)
	require.NoError(t, q.Error)
	require.Len(t, versions(), 1)
	require.NotEqual(t, before, versions())
}

func (h fixture) TestHasUnpaid_FindsCreatedOrders(t *testing.T) {
	sale := h.exposed(10, 5)
	unpaid := func() bool { return must.Get(h.HasUnpaid(t.Context(), sale.GoodsID))(t) }
	require.False(t, unpaid())
	paid, cancelled := h.writeOrder(sale, 9), h.writeOrder(sale, 8)
	require.True(t, unpaid())
	must.Get(h.Pay(sale.GoodsID, paid, today))(t)
	require.True(t, unpaid())
	must.Get(h.CancelOne(sale.GoodsID, cancelled, today))(t)
	require.False(t, unpaid())
}

// TestHoldingPages_ReturnActiveOrders checks that an epoch starts from the active orders, and
// without units from the final ones whose path may still be used.
func (h fixture) TestHoldingPages_ReturnActiveOrders(t *testing.T) {
	sale := h.beginEpoch(h.draft(1, 10, 5).GoodsID)
	require.Equal(t, seckill.Exposed, sale.Status)
	require.EqualValues(t, 1, sale.Epoch)
	require.Empty(t, h.heldOrders(sale))

	a, b, c, d := h.line(sale, 9, 1), h.line(sale, 2, 1), h.line(sale, 9, 2), h.line(sale, 3, 1)
	h.writeAll(sale.GoodsID, a, b, c, d)
	must.Get(h.Pay(sale.GoodsID, c.OrderSn, today))(t)
	must.Get(h.CancelOne(sale.GoodsID, b.OrderSn, today))(t)
	usable := h.line(sale, 3, 1)
	usable.OrderSn = orders.Issue(sale.GoodsID, "3", today.Add(-clockMargin)).String()
	h.writeAll(sale.GoodsID, usable)
	must.Get(h.CancelOne(sale.GoodsID, usable.OrderSn, today))(t)

	second := h.beginEpoch(sale.GoodsID)
	require.EqualValues(t, 2, second.Epoch)
	require.EqualValues(t, 6, second.Stock)
	require.ElementsMatch(t, []order.Held{
		{BuyerID: "9", OrderSn: a.OrderSn, Quantity: 1},
		{BuyerID: "9", OrderSn: c.OrderSn, Quantity: 2},
		{BuyerID: "3", OrderSn: d.OrderSn, Quantity: 1},
		{BuyerID: "3", OrderSn: usable.OrderSn},
	}, h.heldOrders(second))
	require.Equal(t, h.sale(sale.GoodsID), second)

	must.Get(h.CloseSale(t.Context(), sale.GoodsID, today))(t)
	third := h.beginEpoch(sale.GoodsID)
	require.Equal(t, seckill.Closed, third.Status, "a closed sale stays closed")
	require.EqualValues(t, 3, third.Epoch)
}

// TestHoldingPages_LockNothing checks that other transactions change the sale and its orders while
// an epoch's orders are read page by page. Each order is in one page, also if it ends meanwhile.
func (h fixture) TestHoldingPages_LockNothing(t *testing.T) {
	const buyers = 2*holdingPage + 3
	sale := h.exposed(buyers, 1)
	lines := h.lines(sale, buyers)
	h.writeAll(sale.GoodsID, lines...)
	sale = h.beginEpoch(sale.GoodsID)
	pages, units := 0, make(map[string]int64)
	for page, err := range h.HoldingPages(t.Context(), sale.GoodsID, sale.Epoch, today) {
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), holdingPage)
		pages++
		for _, o := range page {
			_, again := units[o.OrderSn] // NotContains compares it with every key
			require.False(t, again, o.OrderSn)
			units[o.OrderSn] = o.Quantity
		}
		for _, ended := range []int{pages - 1, buyers - pages} { // read before, and yet to be read
			must.Get(h.CancelOne(sale.GoodsID, lines[ended].OrderSn, today))(t)
		}
	}
	require.Equal(t, 3, pages)
	require.EqualValues(t, 1, units[lines[0].OrderSn])
	require.Zero(t, units[lines[buyers-1].OrderSn])
	require.EqualValues(t, 6, h.sale(sale.GoodsID).Stock)
	require.Len(t, h.moves(sale.GoodsID), 6, "Redis returns the units of each after the load")
}

// TestHoldingPages_EndWithTheirEpoch checks that a rebuild that slept does not read the orders of
// another epoch.
func (h fixture) TestHoldingPages_EndWithTheirEpoch(t *testing.T) {
	sale := h.exposed(1000, 1)
	h.writeAll(sale.GoodsID, h.lines(sale, 1)...)
	var got []error
	for _, err := range h.HoldingPages(t.Context(), sale.GoodsID, sale.Epoch, today) {
		got = append(got, err)
		h.beginEpoch(sale.GoodsID)
	}
	require.Len(t, got, 2)
	require.NoError(t, got[0])
	require.ErrorIs(t, got[1], rebuild.ErrFenced)
	require.NotErrorIs(t, got[1], order.ErrTryAgain)
}

// TestBeginEpoch_RejectsOldTokens checks that only the newest token begins an epoch, and that a
// draft whose end has passed stays a draft.
func (h fixture) TestBeginEpoch_RejectsOldTokens(t *testing.T) {
	sale := h.draft(1, 10, 5)
	older := must.Get(h.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	newer := must.Get(h.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	require.Greater(t, newer, older)
	for _, token := range []int64{older, newer + 1, -1} {
		_, err := h.BeginEpoch(t.Context(), sale.GoodsID, token, at(today))
		require.ErrorIs(t, err, rebuild.ErrFenced)
		require.NotErrorIs(t, err, order.ErrTryAgain)
	}
	_, err := h.BeginEpoch(t.Context(), sale.GoodsID, newer, at(today.Add(time.Hour)))
	requireConflict(t, err) // the end of the draft has passed
	require.Equal(t, sale, h.sale(sale.GoodsID), "refusals change nothing")
	must.Get(h.BeginEpoch(t.Context(), sale.GoodsID, newer, at(today)))(t)
	_, err = h.BeginEpoch(t.Context(), sale.GoodsID, rebuild.FirstToken, at(today))
	require.ErrorIs(t, err, rebuild.ErrFenced, "the first token needs a draft")
	_, err = h.NextRebuildToken(t.Context(), 1)
	require.ErrorIs(t, err, seckill.ErrNoSuchGoods)
	_, err = h.BeginEpoch(t.Context(), 1, 1, at(today))
	require.ErrorIs(t, err, seckill.ErrNoSuchGoods)
}

// TestBarrierReached_FindsOnlyItsOwn checks that a barrier counts for its own goods, epoch and
// token only.
func (h fixture) TestBarrierReached_FindsOnlyItsOwn(t *testing.T) {
	bar := message.Barrier{Epoch: 3, Token: 9}
	reached := func(goodsID, epoch, token int64) bool {
		return must.Get(h.BarrierReached(t.Context(), goodsID, epoch, token))(t)
	}
	require.False(t, reached(42, 3, 9))
	require.NoError(t, h.RecordBarrier(t.Context(), 42, bar, today))
	require.NoError(t, h.RecordBarrier(t.Context(), 42, bar, today.Add(1)),
		"the same barrier may arrive twice")
	require.True(t, reached(42, 3, 9))
	require.False(t, reached(43, 3, 9), "the barrier belongs to another goods")
	require.False(t, reached(42, 2, 9), "the barrier belongs to another epoch")
	require.False(t, reached(42, 3, 8), "the barrier belongs to another rebuild")
}

// retire retires a sale as it is now, at the moment before which it must be over.
func (h fixture) retire(goodsID int64, overBefore time.Time) bool {
	h.t.Helper()
	return must.Get(h.Retire(h.t.Context(), h.sale(goodsID), overBefore, overBefore))(h.t)
}

// TestRetire_WaitsUntilEverythingIsFinal checks that a sale is not retired while it sells, has an
// unpaid order, has an unreleased move or has an open cut.
func (h fixture) TestRetire_WaitsUntilEverythingIsFinal(t *testing.T) {
	ctx, sale := t.Context(), h.exposed(10, 5)
	later := today.Add(48 * time.Hour)
	retire := func(overBefore time.Time) bool { return h.retire(sale.GoodsID, overBefore) }
	paid, unpaid := h.writeOrder(sale, 1), h.writeOrder(sale, 2)
	must.Get(h.Pay(sale.GoodsID, paid, today))(t)
	require.False(t, retire(later), "an order is unpaid")
	move := must.Get(h.CancelOne(sale.GoodsID, unpaid, today))(t).Move
	require.False(t, retire(later), "a stock move is not released")
	require.NoError(t, h.MarkReleased(ctx, sale.GoodsID, []string{move.ID}, today))
	cut := h.mustChange(sale.GoodsID, salechange.Change{StockDelta: -1}).Cut
	require.False(t, retire(later), "a cut is open")
	h.endCut(*cut, order.CutTooLarge, inventory.CutUndone, 10)
	require.False(t, retire(today), "the sale has not ended")
	for name, differ := range map[string]func(*seckill.Sale){
		"epoch":   func(s *seckill.Sale) { s.Epoch++ },
		"version": func(s *seckill.Sale) { s.Version-- },
	} {
		other := h.sale(sale.GoodsID)
		differ(&other)
		require.False(t, must.Get(h.Retire(ctx, other, later, later))(t), name)
	}
	require.Len(t, must.Get(h.OverBefore(ctx, later, 0, 10))(t), 1)
	must.Get(h.CloseSale(ctx, sale.GoodsID, later))(t)
	require.False(t, retire(later.Add(-time.Millisecond)), "the sale was not closed yet")
	require.True(t, retire(later))

	require.Empty(t, must.Get(h.OverBefore(ctx, later, 0, 10))(t))
	require.Empty(t, must.Get(h.LiveGoods(ctx, nil))(t))
	require.Empty(t, must.Get(h.RetiredBetween(ctx, today, later, 0, 10))(t))
	require.Len(t, must.Get(h.RetiredBetween(ctx, later, later.Add(time.Second), 0, 10))(t), 1)
}

// TestRetire_AnyChangeUndoesIt checks that every later change of the sale or its orders makes the
// sale live again.
func (h fixture) TestRetire_AnyChangeUndoesIt(t *testing.T) {
	ctx, later := t.Context(), today.Add(48*time.Hour)
	var failed reservation.OrderLine // of the sale, before it is retired
	for name, change := range map[string]func(seckill.Sale){
		"a late order": func(s seckill.Sale) { h.writeOrder(s, 1) },
		"a failed one": func(s seckill.Sale) {
			h.writeFailed(s.GoodsID, h.line(s, 1, 1), order.FailedUnwritten)
		},
		"a requeue": func(s seckill.Sale) {
			must.Get(h.ScheduleRelease(ctx, s.GoodsID, failed, later))(t)
		},
		"a new end": func(s seckill.Sale) {
			end := salechange.Change{EndAt: new(later.Add(time.Hour))}
			must.Get(h.Change(ctx, s.GoodsID, end, noKey, later))(t)
		},
		"a rebuild": func(s seckill.Sale) { h.beginEpoch(s.GoodsID) },
	} {
		sale := h.exposed(10, 5)
		failed, _ = h.writeFailedOrder(sale, 9, 1)
		require.True(t, h.retire(sale.GoodsID, later))
		change(sale)
		require.False(t, h.sale(sale.GoodsID).Retired, name)
	}
}
