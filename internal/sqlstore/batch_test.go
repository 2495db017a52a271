package sqlstore

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestWriteBatch_StoresOrdersAndTakesStock checks that a batch stores its orders and takes their
// units with one update of the sale.
func (h fixture) TestWriteBatch_StoresOrdersAndTakesStock(t *testing.T) {
	sale := h.exposed(10, 5)
	l := h.line(sale, 7, 3)
	out := h.writeAll(sale.GoodsID, l, h.line(sale, 8, 1))
	require.Len(t, out.Created, 2)
	require.Equal(t, order.Order{
		OrderLine: l, GoodsID: sale.GoodsID, Amount: 3 * 1999, Status: order.Created,
		CreatedAt: today.Add(time.Minute), PayBy: today.Add(16 * time.Minute),
	}, h.order(sale.GoodsID, l.OrderSn))
	require.Equal(t, sale.Version+1, h.sale(sale.GoodsID).Version, "one compare-and-swap")
	require.EqualValues(t, 4, h.requireBalanced(sale.GoodsID))
}

// TestWriters_SleepShortensNoPaymentTime writes orders in each way, with times that were read 20
// minutes before the lock.
func (h fixture) TestWriters_SleepShortensNoPaymentTime(t *testing.T) {
	const slept = 20 * time.Minute
	sale := h.exposed(10, 5)
	asleep := at(today)
	asleep.ReadAt = time.Now().Add(-slept)
	batch := batchOf(sale.GoodsID, h.line(sale, 1, 1))
	batch.Times = asleep
	h.optimism.paused.Store(0)
	h.write(batch)
	optimistic := batch.Lines[0].OrderSn
	batch.Lines = append(batch.Lines, h.line(sale, 2, 1))
	h.write(batch)

	failed, deadLetter := h.writeFailedOrder(sale, 3, 1)
	undo := must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, failed, today))(t)
	must.Get(h.RestoreOrder(t.Context(), deadLetter.ID, undo, asleep))(t)

	late := h.line(sale, 4, 1)
	h.beginEpoch(sale.GoodsID)
	h.write(parking(sale.GoodsID, late))
	token := must.Get(h.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	must.Get(h.BeginEpoch(t.Context(), sale.GoodsID, token, asleep))(t)

	for way, sn := range map[string]string{
		"optimistic": optimistic, "after reading": batch.Lines[1].OrderSn,
		"restored": failed.OrderSn, "parked": late.OrderSn,
	} {
		o := h.order(sale.GoodsID, sn)
		require.Equal(t, order.Created, o.Status, way)
		require.False(t, o.PayBy.Before(asleep.PayBy.Add(slept)), "%s: %s", way, o.PayBy)
	}
}

// TestWriteBatch_FailsOrdersOverTheBuyersLimit checks that orders over the buyer's limit and beyond
// the stock fail. The other orders of the batch succeed. A repeated batch returns no units again.
func (h fixture) TestWriteBatch_FailsOrdersOverTheBuyersLimit(t *testing.T) {
	sale := h.exposed(8, 3)
	h.writeAll(sale.GoodsID, h.line(sale, 1, 2))
	lines := []reservation.OrderLine{
		h.line(sale, 1, 2), h.line(sale, 1, 1), h.line(sale, 2, 3), h.line(sale, 2, 1),
		h.line(sale, 3, 3), h.line(sale, 4, 2),
	}
	out := h.writeAll(sale.GoodsID, lines...)
	require.Equal(t, []string{lines[1].OrderSn, lines[2].OrderSn, lines[5].OrderSn}, out.Created)
	h.requireFailedOnce(sale, out, lines[0], order.FailedOverLimit)
	h.requireFailedOnce(sale, out, lines[3], order.FailedOverLimit)
	h.requireFailedOnce(sale, out, lines[4], order.FailedOversold)
	again := h.writeAll(sale.GoodsID, lines...)
	require.Empty(t, again.Failed)
	require.Equal(t, order.Failed, again.Existing[lines[0].OrderSn])
	require.Len(t, h.moves(sale.GoodsID), 3)
	require.EqualValues(t, 8, h.requireBalanced(sale.GoodsID))
}

// requireFailedOnce requires that a failed order has one row, one dead letter and a stock move.
func (h fixture) requireFailedOnce(
	sale seckill.Sale, out order.Outcome, l reservation.OrderLine, reason order.FailureReason,
) {
	h.t.Helper()
	require.Equal(h.t, reason, out.Failed[l.OrderSn])
	o := h.order(sale.GoodsID, l.OrderSn)
	require.Equal(h.t, order.Failed, o.Status)
	require.Equal(h.t, reason, o.FailureReason)
	require.NotZero(h.t, o.ClosedAt)
	own := slices.DeleteFunc(h.deadLetters(), func(d order.DeadLetter) bool {
		return d.OrderSn != l.OrderSn
	})
	require.Len(h.t, own, 1)
	require.Equal(h.t, reason, own[0].Reason)
	require.Equal(h.t, delivered, order.DeliveryInfo{
		Origin: own[0].Origin, Attempts: own[0].Attempts, FirstSeenAt: own[0].FirstSeenAt,
	})
	require.Equal(h.t, message.Message{GoodsID: sale.GoodsID, Orders: []reservation.OrderLine{l}},
		must.Get(message.Decode(own[0].Body))(h.t),
		"an operator can publish the body again unchanged")
	moves := h.moves(sale.GoodsID)
	i := slices.IndexFunc(moves, func(m order.StockMove) bool { return m.OrderSn == l.OrderSn })
	require.GreaterOrEqual(h.t, i, 0, "no move of a failed order")
	require.Contains(h.t, out.Moves, moves[i])
	require.Equal(h.t, order.MoveFail, moves[i].Kind)
	require.Equal(h.t, l.Quantity, moves[i].Quantity)
	require.Equal(h.t, sale.Epoch, moves[i].Epoch)
}

// TestWriteBatch_AsksToAdoptOrdersOfAnOlderEpoch checks that a batch with orders of an older epoch
// is not written before the present epoch adopts them.
func (h fixture) TestWriteBatch_AsksToAdoptOrdersOfAnOlderEpoch(t *testing.T) {
	sale := h.exposed(10, 5)
	written, late, later := h.line(sale, 1, 1), h.line(sale, 2, 1), h.line(sale, 3, 1)
	h.writeAll(sale.GoodsID, written)
	now := h.beginEpoch(sale.GoodsID)
	fresh := h.line(now, 4, 1)

	b := batchOf(sale.GoodsID, written, late, fresh, later)
	_, err := h.WriteBatch(t.Context(), b)
	adopt, ok := errors.AsType[*orderwriter.AdoptError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, &orderwriter.AdoptError{
		Epoch: 2, Limit: sale.MaxPerBuyerLimit,
		OrderSns: []string{late.OrderSn, later.OrderSn},
	}, adopt)
	require.EqualValues(t, 1, h.requireBalanced(sale.GoodsID), "nothing was written")

	b.Adopted, b.Epoch = map[string]int64{late.OrderSn: 1, later.OrderSn: 1}, 1
	_, err = h.WriteBatch(t.Context(), b)
	require.ErrorAs(t, err, &adopt, "an epoch that is over adopted the orders")

	b.Epoch = 2
	require.Equal(t, []string{late.OrderSn, fresh.OrderSn, later.OrderSn}, h.write(b).Created)
	require.EqualValues(t, 4, h.requireBalanced(sale.GoodsID))
	require.EqualValues(t, 1, h.order(sale.GoodsID, late.OrderSn).Epoch,
		"the order keeps the epoch that reserved it")
}

func (h fixture) TestWriteBatch_RejectsUnknownGoods(t *testing.T) {
	sale := seckill.Sale{GoodsID: 99, Epoch: 1}
	_, err := h.WriteBatch(t.Context(), batchOf(99, h.line(sale, 1, 1)))
	require.ErrorIs(t, err, seckill.ErrNoSuchGoods)
	require.NotErrorIs(t, err, order.ErrTryAgain)
}

// TestWriteBatch_RejectsDataThatDoesNotFit checks that the store refuses values that its columns
// cannot hold, without a request to retry. The order can then be written as a failed one.
func (h fixture) TestWriteBatch_RejectsDataThatDoesNotFit(t *testing.T) {
	sale := h.exposed(10, 5)
	bad := map[string]func(*reservation.OrderLine){
		"name too long": func(l *reservation.OrderLine) { l.Name = strings.Repeat("é", 256) },
		"phone no text": func(l *reservation.OrderLine) { l.Phone = "\xff\xfe" },
		"number too long": func(l *reservation.OrderLine) {
			l.OrderSn = strings.Repeat("~", 65)
		},
		"no quantity":        func(l *reservation.OrderLine) { l.Quantity = 0 },
		"less than nothing":  func(l *reservation.OrderLine) { l.Quantity = -1 },
		"below the smallest": func(l *reservation.OrderLine) { l.Quantity = -1 << 63 },
	}
	for name, spoil := range bad {
		l := h.line(sale, 2, 1)
		spoil(&l)
		b := batchOf(sale.GoodsID, h.line(sale, 1, 1), l)
		_, err := h.WriteBatch(t.Context(), b)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, order.ErrTryAgain, "%s: a retry cannot succeed", name)
		require.Zero(t, h.requireBalanced(sale.GoodsID), "%s: nothing was written", name)
		if l.OrderSn[0] == '~' {
			continue // AddDeadLetter stores a number that is not minted
		}
		require.Equal(t, map[string]order.FailureReason{l.OrderSn: order.FailedUnwritten},
			h.writeFailed(sale.GoodsID, l, order.FailedUnwritten).Failed, name)
		require.Zero(t, h.requireBalanced(sale.GoodsID))
	}
	longest := h.line(sale, 3, 1)
	longest.Name, longest.Phone = strings.Repeat("🎁", 255), strings.Repeat("9", 1600)
	h.writeAll(sale.GoodsID, longest)
	require.Equal(t, longest, h.order(sale.GoodsID, longest.OrderSn).OrderLine)
}

// TestWriteBatch_WritesThousandsOfOrders checks that a batch may hold thousands of orders. The
// store splits its statements.
func (h fixture) TestWriteBatch_WritesThousandsOfOrders(t *testing.T) {
	sale := h.exposed(2500, 1)
	out := h.writeAll(sale.GoodsID, h.lines(sale, 2600)...)
	require.Len(t, out.Created, 2500)
	require.Len(t, out.Failed, 100)
	require.EqualValues(t, 2500, h.requireBalanced(sale.GoodsID))
}

// TestChangeStock_MissedSwapAsksForRetry checks that the compare-and-swap of the stock fails after
// another writer changed the version, and for too many units.
func (h fixture) TestChangeStock_MissedSwapAsksForRetry(t *testing.T) {
	sale := h.exposed(10, 5)
	row := must.Get(findSale(h.read(t.Context()), sale.GoodsID))(t)
	h.writeOrder(sale, 1) // another writer changes the version
	require.ErrorIs(t, changeStock(h.read(t.Context()), row, -1, today), order.ErrTryAgain)
	row.Version++
	require.ErrorIs(t, changeStock(h.read(t.Context()), row, -10, today), order.ErrTryAgain,
		"the update takes more units than the stock")
	require.EqualValues(t, 1, h.requireBalanced(sale.GoodsID))
}

// TestSchema_ForbidsOverselling checks that the constraints of the tables reject negative stock and
// other impossible values.
func (h fixture) TestSchema_ForbidsOverselling(t *testing.T) {
	sale := h.exposed(10, 5)
	l := h.line(sale, 1, 1)
	h.writeAll(sale.GoodsID, l)
	for _, sql := range []string{
		"UPDATE sales SET stock = -1 WHERE goods_id = ?",
		"UPDATE sales SET stock = total + 1 WHERE goods_id = ?",
		"UPDATE buyer_holdings SET held = -1 WHERE goods_id = ?",
		"UPDATE orders SET quantity = 0 WHERE goods_id = ?",
		"UPDATE orders SET status = 'lost' WHERE goods_id = ?",
	} {
		err := wrapError("test", h.read(t.Context()).Exec(sql, sale.GoodsID).Error)
		require.Error(t, err, sql)
		require.NotErrorIs(t, err, order.ErrTryAgain, sql)
	}
	require.EqualValues(t, 1, h.requireBalanced(sale.GoodsID))
}

// TestWriteOptimistically_FailureLeavesNothing checks that a failed optimistic insert writes
// nothing. A second transaction then reads first and writes the batch. The next batches also read
// first.
func (h fixture) TestWriteOptimistically_FailureLeavesNothing(t *testing.T) {
	sale := h.exposed(10, 2)
	first := h.line(sale, 1, 1)
	require.Len(t, h.writeAll(sale.GoodsID, first).Created, 1)
	require.True(t, h.optimism.try(), "a batch of new buyers succeeds optimistically")

	again, stranger := h.line(sale, 1, 1), h.line(sale, 2, 1)
	require.Len(t, h.writeAll(sale.GoodsID, stranger, again).Created, 2,
		"the key of the holding detects a returning buyer")
	for range pauseBatches {
		require.False(t, h.optimism.try(), "the next batches read first")
	}
	require.True(t, h.optimism.try())

	h.optimism.paused.Store(0)
	out := h.writeAll(sale.GoodsID, h.line(sale, 3, 1), first)
	require.Len(t, out.Created, 1)
	require.Equal(t, map[string]order.Status{first.OrderSn: order.Created}, out.Existing,
		"the key of the order number detects a repeated message")
	require.False(t, h.optimism.try())
	require.EqualValues(t, 4, h.requireBalanced(sale.GoodsID))
}

// TestWriteOptimistically_AfterAnotherWriter changes a sale between two batches of new buyers. The
// next batch follows the changed row and not the one that the last batch left.
func (h fixture) TestWriteOptimistically_AfterAnotherWriter(t *testing.T) {
	sale := h.exposed(2, 2)
	buyer := int64(0)
	next := func() order.Order {
		buyer++
		h.optimism.paused.Store(0)
		line := h.line(sale, buyer, 1)
		require.Equal(t, []string{line.OrderSn}, h.writeAll(sale.GoodsID, line).Created)
		last, known := h.lastRows.Get(sale.GoodsID)
		require.True(t, known)
		require.Equal(t, h.sale(sale.GoodsID).Stock, last.Stock)
		h.requireBalanced(sale.GoodsID)
		return h.order(sale.GoodsID, line.OrderSn)
	}
	next()
	before := h.sale(sale.GoodsID).Version
	last := next()
	require.Equal(t, before+1, h.sale(sale.GoodsID).Version, "one compare-and-swap")

	must.Get(h.CancelOne(sale.GoodsID, last.OrderSn, today))(t)
	next()
	h.mustChange(sale.GoodsID, salechange.Change{StockDelta: 4})
	next()

	late := h.line(sale, 100, 1)
	sale = h.beginEpoch(sale.GoodsID)
	h.optimism.paused.Store(0)
	_, err := h.WriteBatch(t.Context(), batchOf(sale.GoodsID, late))
	_, adopt := errors.AsType[*orderwriter.AdoptError](err)
	require.True(t, adopt, "%v", err)
	require.EqualValues(t, sale.Epoch, next().Epoch)

	later := h.sale(sale.GoodsID).UpdatedAt.Add(time.Hour)
	require.NoError(t, h.read(t.Context()).Exec("UPDATE sales SET updated_at = ? WHERE goods_id = ?",
		later.UnixMilli(), sale.GoodsID).Error)
	next()
	require.Greater(t, h.sale(sale.GoodsID).UpdatedAt, later, "no two changes share a time")

	remembered, _ := h.lastRows.Get(sale.GoodsID)
	remembered.Price = 7
	h.lastRows.Add(sale.GoodsID, remembered)
	require.EqualValues(t, 7, next().Amount, "the batch has not read the row")

	h.optimism.paused.Store(0)
	require.Empty(t, h.writeAll(sale.GoodsID).Created)
	after, _ := h.lastRows.Get(sale.GoodsID)
	require.Equal(t, h.sale(sale.GoodsID).Version, after.Version, "an empty batch leaves no row")
}
