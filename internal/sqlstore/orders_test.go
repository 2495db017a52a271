package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

func (h fixture) TestCountOrders_GroupsByStatus(t *testing.T) {
	sale := h.exposed(10, 3)
	a, b := h.line(sale, 1, 2), h.line(sale, 2, 1)
	h.writeAll(sale.GoodsID, a, b, h.line(sale, 3, 3))
	must.Get(h.Pay(sale.GoodsID, a.OrderSn, today))(t)
	must.Get(h.CancelOne(sale.GoodsID, b.OrderSn, today))(t)
	require.Equal(t, map[order.Status]stats.Count{
		order.Paid:      {Orders: 1, Units: 2, Amount: 3998},
		order.Cancelled: {Orders: 1, Units: 1, Amount: 1999},
		order.Created:   {Orders: 1, Units: 3, Amount: 5997},
	}, must.Get(h.CountOrders(t.Context(), sale.GoodsID))(t))
	require.Equal(t, map[int64]int64{sale.GoodsID: 2},
		must.Get(h.PaidUnits(t.Context(), []int64{sale.GoodsID, 5}))(t))
	require.Empty(t, must.Get(h.PaidUnits(t.Context(), nil))(t))
}

// TestSumsOfOrders_ReadAnIndexAlone checks that what consoles and ledgers ask every second reads no
// row of an order. The rows are far larger than the entries of the index.
func (h fixture) TestSumsOfOrders_ReadAnIndexAlone(t *testing.T) {
	sale := h.exposed(2000, 1)
	h.writeAll(sale.GoodsID, h.lines(sale, 500)...)
	explained := 0
	pool := explainedPool{h.db.ConnPool, func(query string, args ...any) {
		h.requireIndexAlone(t, query, args...)
		explained++
	}}
	h.db.ConnPool, h.db.Statement.ConnPool = pool, pool
	must.Get(h.Database(t.Context(), sale.GoodsID))(t)
	must.Get(h.CountOrders(t.Context(), sale.GoodsID))(t)
	must.Get(h.PaidUnits(t.Context(), []int64{sale.GoodsID, 5}))(t)
	require.Equal(t, 3, explained, "each call is one query")
}

// requireIndexAlone requires of the plan of a query that a step reads an index alone.
func (h fixture) requireIndexAlone(t *testing.T, query string, args ...any) {
	t.Helper()
	explain, covering := "EXPLAIN FORMAT=JSON ", `"(using_index|covering)": true`
	if isSQLite(h.db) {
		explain, covering = "EXPLAIN QUERY PLAN ", "USING COVERING INDEX orders_due"
	}
	pool := h.db.ConnPool.(explainedPool).ConnPool
	rows := must.Get(pool.QueryContext(t.Context(), explain+query, args...))(t)
	defer rows.Close()
	columns, plan := make([]any, len(must.Get(rows.Columns())(t))), ""
	for rows.Next() {
		var step string // the last column
		for i := range columns {
			columns[i] = &step
		}
		require.NoError(t, rows.Scan(columns...))
		plan += step + "\n"
	}
	require.NoError(t, rows.Err())
	require.Regexp(t, covering, plan, query)
}

// explainedPool is a pool whose queries are explained first.
type explainedPool struct {
	gorm.ConnPool
	explain func(query string, args ...any)
}

func (p explainedPool) QueryContext(
	ctx context.Context, query string, args ...any,
) (*sql.Rows, error) {
	p.explain(query, args...)
	return p.ConnPool.QueryContext(ctx, query, args...)
}

// TestCancel_ReturnsUnitsOnce checks that the first cancellation writes a stock move of the present
// epoch. A repetition writes no other.
func (h fixture) TestCancel_ReturnsUnitsOnce(t *testing.T) {
	sale := h.exposed(10, 5)
	l := h.line(sale, 1, 3)
	h.writeAll(sale.GoodsID, l)
	h.beginEpoch(sale.GoodsID)
	now := today.Add(5 * time.Minute)
	cancelled := must.Get(h.CancelOne(sale.GoodsID, l.OrderSn, now))(t)
	move := cancelled.Move
	require.Equal(t, order.Cancelled, cancelled.Order.Status)
	require.Equal(t, now, cancelled.Order.ClosedAt)
	require.Equal(t, &order.StockMove{
		ID: move.ID, GoodsID: sale.GoodsID, Epoch: 2, BuyerID: "1", OrderSn: l.OrderSn,
		Quantity: 3, Kind: order.MoveCancel, MadeAt: now,
	}, move, "the move belongs to the present epoch")
	require.Equal(t, []order.StockMove{*move}, h.moves(sale.GoodsID))
	require.Equal(t, []order.StockMove{*move},
		must.Get(h.MovesOfOrder(t.Context(), sale.GoodsID, l.OrderSn))(t))
	again := must.Get(h.CancelOne(sale.GoodsID, l.OrderSn, now.Add(time.Minute)))(t)
	require.Equal(t, payment.Cancellation{Order: cancelled.Order}, again)
	require.Zero(t, h.requireBalanced(sale.GoodsID))
	_, err := h.CancelOne(1, l.OrderSn, now)
	require.ErrorIs(t, err, seckill.ErrNoSuchGoods)
}

// TestCancel_AnswersEachOrderOfABatch checks that orders that share a transaction have separate
// answers. A refusal of one order affects no other.
func (h fixture) TestCancel_AnswersEachOrderOfABatch(t *testing.T) {
	sale := h.exposed(20, 5)
	first, second := h.line(sale, 1, 3), h.line(sale, 1, 2)
	paid, before := h.line(sale, 2, 1), h.line(sale, 3, 4)
	h.writeAll(sale.GoodsID, first, second, paid, before)
	must.Get(h.Pay(sale.GoodsID, paid.OrderSn, today))(t)
	earlier := must.Get(h.CancelOne(sale.GoodsID, before.OrderSn, today))(t).Move
	now := today.Add(time.Minute)
	asked := []string{
		second.OrderSn, "0", paid.OrderSn, first.OrderSn, before.OrderSn, second.OrderSn,
	}
	list := must.Get(h.Cancel(t.Context(), sale.GoodsID, slices.Clone(asked), now))(t)
	require.Len(t, list, len(asked))
	for _, i := range []int{0, 3, 4, 5} {
		require.NoError(t, list[i].Err)
		require.Equal(t, order.Cancelled, list[i].Order.Status)
		require.Equal(t, asked[i], list[i].Order.OrderSn)
	}
	require.ErrorIs(t, list[1].Err, order.ErrNoSuchOrder)
	requireConflict(t, list[2].Err)
	require.Nil(t, list[4].Move, "an earlier call returned the units")
	require.Nil(t, list[5].Move, "the first mention of the order returned the units")
	require.ElementsMatch(t, []order.StockMove{*earlier, *list[0].Move, *list[3].Move},
		h.moves(sale.GoodsID))
	require.EqualValues(t, []int64{2, 3}, []int64{list[0].Move.Quantity, list[3].Move.Quantity})
	require.EqualValues(t, 1, h.requireBalanced(sale.GoodsID), "only the paid order stays active")
}

func (h fixture) TestExpireDue_ExpiresTheLongestOverdueFirst(t *testing.T) {
	sale := h.exposed(20, 5)
	var sns []string
	for i := range 6 { // each order is due a minute after the order before
		b := batchOf(sale.GoodsID, h.line(sale, int64(1+i%2), 2))
		b.PayBy = today.Add(time.Duration(i) * time.Minute)
		sns = append(sns, h.write(b).Created...)
	}
	require.Len(t, sns, 4, "the limit allows each buyer two orders")
	must.Get(h.Pay(sale.GoodsID, sns[1], today))(t)
	require.Empty(t,
		must.Get(h.ExpireDue(t.Context(), sale.GoodsID, today.Add(-time.Second), 100))(t))
	other := h.exposed(20, 5)
	overdue := func(at time.Time) []int64 {
		goodsIDs := []int64{other.GoodsID, sale.GoodsID, sale.GoodsID + 1000}
		return must.Get(h.Overdue(t.Context(), goodsIDs, at))(t)
	}
	require.Empty(t, overdue(today.Add(-time.Second)))
	require.Equal(t, []int64{sale.GoodsID}, overdue(today))
	now := today.Add(2 * time.Minute)
	first := must.Get(h.ExpireDue(t.Context(), sale.GoodsID, now, 1))(t)
	require.Len(t, first, 1)
	require.Equal(t, sns[0], first[0].OrderSn, "the longest overdue order expires first")
	require.Equal(t, order.MoveExpire, first[0].Kind)
	rest := must.Get(h.ExpireDue(t.Context(), sale.GoodsID, now, 100))(t)
	require.Len(t, rest, 1, "only the unpaid overdue order expires")
	require.Equal(t, sns[2], rest[0].OrderSn)
	require.Empty(t, overdue(now))
	o := h.order(sale.GoodsID, sns[2])
	require.Equal(t, order.Expired, o.Status)
	require.Equal(t, now, o.ClosedAt)
	require.EqualValues(t, 4, h.requireBalanced(sale.GoodsID))
}

// TestMarkReleased_MarksOnce checks that a released move leaves the list of unreleased moves.
// Another goods cannot mark it.
func (h fixture) TestMarkReleased_MarksOnce(t *testing.T) {
	sale := h.exposed(10, 5)
	var ids []string
	for i := range 3 {
		at := today.Add(time.Duration(i) * time.Second)
		sn := h.writeOrder(sale, int64(i+1))
		ids = append(ids, must.Get(h.CancelOne(sale.GoodsID, sn, at))(t).Move.ID)
	}
	moveIDs := func(before time.Time, limit int) []string {
		list := must.Get(h.UnreleasedMoves(t.Context(), sale.GoodsID, before, limit))(t)
		return mapSlice(list, func(m order.StockMove) string { return m.ID })
	}
	h.requireUnreleased(sale.GoodsID, 3, today)
	h.requireUnreleased(sale.GoodsID+1, 0, time.Time{})
	require.Equal(t, ids, moveIDs(today.Add(time.Hour), 10))
	require.Equal(t, ids[:2], moveIDs(today.Add(time.Second), 10))
	require.Equal(t, ids[:1], moveIDs(today.Add(time.Hour), 1))
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID+1, ids, today))
	require.Len(t, moveIDs(today.Add(time.Hour), 10), 3,
		"a mark with another goods changes nothing")
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, ids[:2], today))
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, ids[:2], today.Add(1)))
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, nil, today))
	require.Equal(t, ids[2:], moveIDs(today.Add(time.Hour), 10))
	h.requireUnreleased(sale.GoodsID, 1, today.Add(2*time.Second))
}

// TestReleaseLocked_MarksWhatWasApplied checks that moves of other goods and released ones are not
// applied, and that an error marks nothing.
func (h fixture) TestReleaseLocked_MarksWhatWasApplied(t *testing.T) {
	sale := h.exposed(10, 5)
	var ids []string
	for i := range 3 {
		sn := h.writeOrder(sale, int64(i+1))
		ids = append(ids, must.Get(h.CancelOne(sale.GoodsID, sn, today))(t).Move.ID)
	}
	slices.Sort(ids)
	var seen, done []string
	var problem error
	apply := func(moves []order.StockMove) ([]string, error) {
		seen = mapSlice(moves, func(m order.StockMove) string { return m.ID })
		slices.Sort(seen)
		return done, problem
	}
	release := func(goodsID int64) error {
		seen = nil
		return h.ReleaseLocked(t.Context(), goodsID, ids, today, apply)
	}
	require.NoError(t, release(sale.GoodsID+1))
	require.Empty(t, seen)
	done, problem = ids, io.ErrUnexpectedEOF
	require.ErrorIs(t, release(sale.GoodsID), io.ErrUnexpectedEOF)
	done, problem = ids[:1], nil
	require.NoError(t, release(sale.GoodsID))
	require.Equal(t, ids, seen, "the error marked nothing")
	require.NoError(t, release(sale.GoodsID))
	require.Equal(t, ids[1:], seen)
}

// TestUnreleasedAfter_ListsEachGoodsOnce checks that the goods with due moves follow one another,
// and that each appears once.
func (h fixture) TestUnreleasedAfter_ListsEachGoodsOnce(t *testing.T) {
	sales := []seckill.Sale{h.exposed(10, 5), h.exposed(10, 5), h.exposed(10, 5)}
	slices.SortFunc(sales, func(a, b seckill.Sale) int { return cmp.Compare(a.GoodsID, b.GoodsID) })
	for i, sale := range sales {
		for buyer := range int64(2) {
			sn := h.writeOrder(sale, buyer+1)
			at := today.Add(time.Duration(i) * time.Second)
			must.Get(h.CancelOne(sale.GoodsID, sn, at))(t)
		}
	}
	listed := func(before time.Time) (ids []int64) {
		for id := int64(0); ; ids = append(ids, id) {
			if id = must.Get(h.UnreleasedAfter(t.Context(), id, before))(t); id == 0 {
				return ids
			}
		}
	}
	require.Empty(t, listed(today.Add(-1)))
	require.Equal(t, []int64{sales[0].GoodsID, sales[1].GoodsID}, listed(today.Add(time.Second)))
	moves := h.moves(sales[0].GoodsID)
	require.Len(t, moves, 2)
	for _, m := range moves {
		require.NoError(t, h.MarkReleased(t.Context(), m.GoodsID, []string{m.ID}, today))
	}
	require.Equal(t, []int64{sales[1].GoodsID, sales[2].GoodsID}, listed(today.Add(time.Hour)))
}

func (h fixture) TestOrdersOf_PagesNewestFirst(t *testing.T) {
	one, two := h.exposed(10, 10), h.exposed(10, 10)
	var mine []string // newest first
	for i := range 5 {
		sale := []seckill.Sale{one, two}[i%2]
		mine = append([]string{h.writeOrder(sale, 7)}, mine...)
		h.writeOrder(sale, 8)
	}
	slices.SortFunc(mine, func(a, b string) int { return cmp.Compare(b, a) })
	sns := func(list []order.Order, err error) []string {
		require.NoError(t, err)
		return orderSns(list)
	}
	require.Equal(t, mine[:2], sns(h.OrdersOf(t.Context(), "7", "", 2)))
	require.Equal(t, mine[2:], sns(h.OrdersOf(t.Context(), "7", mine[1], 10)))
	require.Empty(t, sns(h.OrdersOf(t.Context(), "9", "", 10)))
	require.Len(t, h.all(one.GoodsID), 6)
	must.Get(h.Pay(one.GoodsID, mine[0], today))(t)
	require.Equal(t, mine[:1], sns(h.OrdersOfGoods(t.Context(), one.GoodsID, order.Paid, "", 10)))
	require.Len(t, sns(h.OrdersOfGoods(t.Context(), one.GoodsID, order.Created, "", 10)), 5)
	require.Len(t, sns(h.OrdersOfGoods(t.Context(), one.GoodsID, order.Created, mine[2], 10)), 2)
}

// TestOrders_AreFoundByTheirNumbers finds a sale's orders by numbers, and those of a merchant by
// the end of one.
func (h fixture) TestOrders_AreFoundByTheirNumbers(t *testing.T) {
	ctx, sale := t.Context(), h.exposed(10, 10)
	paid, created := h.writeOrder(sale, 7), h.writeOrder(sale, 7)
	others := h.writeOrder(h.exposed(1, 1), 7)
	must.Get(h.Pay(sale.GoodsID, paid, today))(t)
	sns := []string{created, "unknown", others, paid}
	require.Equal(t, map[string]order.Status{paid: order.Paid, created: order.Created},
		must.Get(h.StatusOf(ctx, sale.GoodsID, sns))(t))
	require.ElementsMatch(t, []string{paid, created},
		orderSns(must.Get(h.OrdersByNumber(ctx, sale.GoodsID, sns))(t)))
	require.Empty(t, must.Get(h.OrdersByNumber(ctx, sale.GoodsID, nil))(t))

	end := paid[len(paid)-8:]
	for _, merchant := range []string{"", sale.MerchantID} {
		found := must.Get(h.OrdersEndingWith(ctx, merchant, strings.ToLower(end), 10))(t)
		require.Equal(t, []string{paid}, found)
	}
	require.Empty(t, must.Get(h.OrdersEndingWith(ctx, "another", end, 10))(t))
	require.Empty(t, must.Get(h.OrdersEndingWith(ctx, "", "--------", 10))(t))
}
