package sqlstore

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestWriteFailed_WritesOnce checks that a repeated write of a failed order adds no row, stock move
// or dead letter.
func (h fixture) TestWriteFailed_WritesOnce(t *testing.T) {
	sale := h.exposed(10, 5)
	l := h.line(sale, 1, 2)
	deadLetter := order.DeadLetter{
		GoodsID: sale.GoodsID, Reason: order.FailedUnwritten, Attempts: 3,
		FirstSeenAt: today.Add(-1), Origin: "seckill.orders.4", Body: []byte("as it came"),
	}
	write := func() order.Outcome {
		return must.Get(h.WriteFailed(t.Context(), l, deadLetter, today))(t)
	}
	out := write()
	require.Equal(t, map[string]order.FailureReason{l.OrderSn: order.FailedUnwritten}, out.Failed)
	require.Equal(t, out.Moves, h.moves(sale.GoodsID))

	again := write()
	require.Empty(t, again.Failed)
	require.Equal(t, map[string]order.Status{l.OrderSn: order.Failed}, again.Existing)
	require.Len(t, h.moves(sale.GoodsID), 1)

	deadLetters := h.deadLetters()
	require.Len(t, deadLetters, 1)
	require.Equal(t, order.DeadLetter{
		ID: deadLetters[0].ID, GoodsID: sale.GoodsID, OrderSn: l.OrderSn,
		Reason: order.FailedUnwritten, Attempts: deadLetter.Attempts, Origin: deadLetter.Origin,
		Body: deadLetter.Body, FirstSeenAt: today.Add(-1e6), // the column stores milliseconds
	}, deadLetters[0])
	require.Zero(t, h.requireBalanced(sale.GoodsID))
}

// TestWriteMissing_NewestTokenOnly checks that a rebuild writes nothing once a newer one has begun.
func (h fixture) TestWriteMissing_NewestTokenOnly(t *testing.T) {
	sale := h.exposed(10, 5)
	l := h.line(sale, 1, 2)
	d := order.DeadLetter{GoodsID: sale.GoodsID, Reason: order.FailedUnwritten}
	old := must.Get(h.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	newest := must.Get(h.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	write := func(token int64) error {
		return h.WriteMissing(t.Context(), token, l, d, today)
	}
	require.ErrorIs(t, write(old), rebuild.ErrFenced)
	require.Empty(t, h.deadLetters())
	require.Empty(t, must.Get(h.StatusOf(t.Context(), sale.GoodsID, []string{l.OrderSn}))(t))
	require.NoError(t, write(newest))
	require.Equal(t, order.FailedUnwritten, h.order(sale.GoodsID, l.OrderSn).FailureReason)
	require.Len(t, h.deadLetters(), 1)
}

// TestReturnUnits_OfFinalOrdersOnly checks that a failed order gets a stock move once, and an
// active one none.
func (h fixture) TestReturnUnits_OfFinalOrdersOnly(t *testing.T) {
	sale := h.exposed(10, 5)
	failed, active := h.line(sale, 1, 2), h.line(sale, 2, 1)
	h.writeAll(sale.GoodsID, active)
	out := h.writeFailed(sale.GoodsID, failed, order.FailedUnwritten)
	err := h.ReturnUnits(t.Context(), sale.GoodsID, failed, today)
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "it has a move")
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, []string{out.Moves[0].ID}, today))
	require.NoError(t, h.ReturnUnits(t.Context(), sale.GoodsID, failed, today))
	require.Len(t, h.moves(sale.GoodsID), 1)
	err = h.ReturnUnits(t.Context(), sale.GoodsID, active, today)
	requireConflict(t, err)
	require.Len(t, h.moves(sale.GoodsID), 1)
}

// TestWriteFailed_AcceptsUnknownGoods checks that an order of a sale that does not exist can be
// written as failed. It writes no stock move, which no worker could ever release.
func (h fixture) TestWriteFailed_AcceptsUnknownGoods(t *testing.T) {
	l := h.line(seckill.Sale{GoodsID: 404, Epoch: 7}, 1, 1)
	h.writeFailed(404, l, order.FailedNoSale)
	require.Equal(t, order.FailedNoSale, h.order(404, l.OrderSn).FailureReason)
	require.Empty(t, h.moves(404))
}

func (h fixture) TestDeadLetters_AddListRemove(t *testing.T) {
	id := must.Get(uuid.NewV7())(t)
	unreadable := order.DeadLetter{
		ID: id.String(), Reason: order.FailedMalformed, Attempts: 1, FirstSeenAt: today,
		Origin: "q", Body: []byte("\x00\xff'\";--\r\n"),
	}
	require.NoError(t, h.AddDeadLetter(t.Context(), unreadable))
	require.NoError(t, h.AddDeadLetter(t.Context(), unreadable),
		"the store accepts the same dead letter again")
	require.NoError(t, h.AddDeadLetter(t.Context(), order.DeadLetter{
		OrderSn: strings.Repeat("x", 3000), Origin: "\xff", FirstSeenAt: today,
		Body: make([]byte, 64<<10),
	}), "the store keeps a dead letter of any content")
	require.Equal(t, unreadable, must.Get(h.DeadLetter(t.Context(), unreadable.ID))(t))

	first := must.Get(h.DeadLetters(t.Context(), "", 1))(t)
	require.Equal(t, []order.DeadLetter{unreadable}, first)
	require.EqualValues(t, 2, must.Get(h.CountDeadLetters(t.Context()))(t))
	second := must.Get(h.DeadLetters(t.Context(), first[0].ID, 10))(t)
	require.Len(t, second, 1)
	require.Len(t, second[0].Body, 64<<10)

	require.NoError(t, h.RemoveDeadLetter(t.Context(), unreadable.ID, today))
	require.ErrorIs(t, h.RemoveDeadLetter(t.Context(), unreadable.ID, today),
		order.ErrNoSuchDeadLetter)
	discarded := must.Get(h.AuditTrail(t.Context(),
		salechange.AuditFilter{Action: salechange.ActDiscardOrder}, "", 9))(t)
	require.Len(t, discarded, 1, "a repetition discards nothing")
	require.Equal(t, unreadable.ID, discarded[0].Became["deadLetterId"])
	_, err := h.DeadLetter(t.Context(), unreadable.ID)
	require.ErrorIs(t, err, order.ErrNoSuchDeadLetter)
	require.NotErrorIs(t, err, order.ErrTryAgain)
}

// writeFailedOrder writes a failed order and marks its move as released.
func (h fixture) writeFailedOrder(
	sale seckill.Sale, buyer, quantity int64,
) (reservation.OrderLine, order.DeadLetter) {
	h.t.Helper()
	l := h.line(sale, buyer, quantity)
	move := h.writeFailed(sale.GoodsID, l, order.FailedUnwritten).Moves[0]
	require.NoError(h.t, h.MarkReleased(h.t.Context(), sale.GoodsID, []string{move.ID}, today))
	deadLetters := h.deadLetters()
	return l, deadLetters[len(deadLetters)-1]
}

// TestRestoreOrder_RestoresOnce checks that a failed order is restored once. Its dead letter and
// the scheduled release are then gone.
func (h fixture) TestRestoreOrder_RestoresOnce(t *testing.T) {
	sale := h.exposed(10, 3)
	l, deadLetter := h.writeFailedOrder(sale, 1, 2)
	undo := must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, l,
		today.Add(order.ReturnAfter)))(t)
	for _, early := range []time.Duration{time.Second, order.ReturnAfter} {
		require.Empty(t, must.Get(h.UnreleasedMoves(t.Context(), sale.GoodsID,
			undo.MadeAt.Add(-early), 10))(t), "the releaser ignores the move until its time")
	}
	_, err := h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute))
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err),
		"only one caller at a time restores an order")
	o := must.Get(h.RestoreOrder(t.Context(), deadLetter.ID, undo, at(today)))(t)
	require.Equal(t, order.Created, o.Status)
	require.Equal(t, o, h.order(sale.GoodsID, l.OrderSn))
	require.EqualValues(t, 2, h.requireBalanced(sale.GoodsID))
	require.Empty(t, h.moves(sale.GoodsID))
	_, err = h.DeadLetter(t.Context(), deadLetter.ID)
	require.ErrorIs(t, err, order.ErrNoSuchDeadLetter)
	_, err = h.RestoreOrder(t.Context(), deadLetter.ID, undo, at(today))
	require.ErrorIs(t, err, order.ErrTryAgain, "the scheduled release is gone")
	log := must.Get(h.AuditTrail(t.Context(), salechange.AuditFilter{
		GoodsID: sale.GoodsID, Action: salechange.ActRequeueOrder,
	}, "", 9))(t)
	require.Len(t, log, 1)
	require.Equal(t,
		map[string]any{"orderSn": l.OrderSn, "deadLetterId": deadLetter.ID}, log[0].Became)
	require.EqualValues(t, 2, h.requireBalanced(sale.GoodsID))
}

// TestRestoreOrder_RestoresNoDecidedOrder checks that an order that has ended since it was
// restored, or whose dead letter was discarded, is not restored. The scheduled release returns its
// units. Of an active order the call only deletes the dead letter that was left over.
func (h fixture) TestRestoreOrder_RestoresNoDecidedOrder(t *testing.T) {
	sale := h.exposed(10, 3)
	plan := func(l reservation.OrderLine) order.StockMove {
		return must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, l, today))(t)
	}
	restore := func(d order.DeadLetter, undo order.StockMove) error {
		_, err := h.RestoreOrder(t.Context(), d.ID, undo, at(today))
		return err
	}
	l, discarded := h.writeFailedOrder(sale, 1, 2)
	undo := plan(l)
	require.NoError(t, h.RemoveDeadLetter(t.Context(), discarded.ID, today))
	require.ErrorIs(t, restore(discarded, undo), order.ErrNoSuchDeadLetter)
	require.Equal(t, order.Failed, h.order(sale.GoodsID, l.OrderSn).Status)
	require.Equal(t, []order.StockMove{undo}, h.moves(sale.GoodsID))
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, []string{undo.ID}, today))

	l = h.line(sale, 2, 2)
	h.writeAll(sale.GoodsID, l)
	leftOver := order.DeadLetter{
		ID: order.DeadLetterID(l.OrderSn), GoodsID: sale.GoodsID, OrderSn: l.OrderSn,
		FirstSeenAt: today,
	}
	none := order.StockMove{GoodsID: sale.GoodsID, OrderSn: l.OrderSn}
	require.NoError(t, h.AddDeadLetter(t.Context(), leftOver))
	require.NoError(t, restore(leftOver, none))
	require.Empty(t, h.deadLetters())

	require.NoError(t, h.AddDeadLetter(t.Context(), leftOver))
	cancelled := must.Get(h.CancelOne(sale.GoodsID, l.OrderSn, today))(t)
	require.NoError(t,
		h.MarkReleased(t.Context(), sale.GoodsID, []string{cancelled.Move.ID}, today))
	requireConflict(t, restore(leftOver, none))
	require.Equal(t, order.Cancelled, h.order(sale.GoodsID, l.OrderSn).Status)
	require.Len(t, h.deadLetters(), 1)
	require.Zero(t, h.requireBalanced(sale.GoodsID))
}

// TestScheduleRelease_PlansForFailedOrdersOnly checks that no return is planned for an order that
// has no row, is active or has ended, or whose row has other units.
func (h fixture) TestScheduleRelease_PlansForFailedOrdersOnly(t *testing.T) {
	sale := h.exposed(10, 3)
	plan := func(l reservation.OrderLine) error {
		_, err := h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(order.ReturnAfter))
		return err
	}
	written := h.line(sale, 1, 2)
	require.ErrorIs(t, plan(written), order.ErrNoSuchOrder)
	h.writeAll(sale.GoodsID, written)
	require.ErrorIs(t, plan(written), order.ErrActive)
	cancelled := must.Get(h.CancelOne(sale.GoodsID, written.OrderSn, today))(t)
	require.NoError(t,
		h.MarkReleased(t.Context(), sale.GoodsID, []string{cancelled.Move.ID}, today))
	requireConflict(t, plan(written))
	other, _ := h.writeFailedOrder(sale, 2, 2)
	other.Quantity = 1
	requireConflict(t, plan(other))
	require.Empty(t, h.moves(sale.GoodsID))
}

// TestRestoreOrder_NeedsStockAndLimit checks that an order is not restored without stock, over the
// buyer's limit or in another epoch. The scheduled release then returns its units.
func (h fixture) TestRestoreOrder_NeedsStockAndLimit(t *testing.T) {
	sale := h.exposed(6, 3)
	over, overLimit := h.writeFailedOrder(sale, 3, 2)
	h.writeAll(sale.GoodsID, h.line(sale, 3, 2))
	tooMany := must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, over, today))(t)
	_, err := h.RestoreOrder(t.Context(), overLimit.ID, tooMany, at(today))
	requireConflict(t, err)
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, []string{tooMany.ID}, today))

	l, deadLetter := h.writeFailedOrder(sale, 1, 2)
	plan := func() order.StockMove {
		return must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute)))(t)
	}
	undo := plan()
	h.writeAll(sale.GoodsID, h.line(sale, 2, 3))
	_, err = h.RestoreOrder(t.Context(), deadLetter.ID, undo, at(today))
	requireConflict(t, err) // too few units are left
	require.Equal(t, []order.StockMove{undo}, h.moves(sale.GoodsID),
		"the scheduled release returns the units that Redis took")
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, []string{undo.ID}, today))
	undo = plan()
	h.beginEpoch(sale.GoodsID)
	_, err = h.RestoreOrder(t.Context(), deadLetter.ID, undo, at(today))
	require.ErrorIs(t, err, order.ErrTryAgain, "the units of the old epoch are void")
	require.EqualValues(t, 5, h.requireBalanced(sale.GoodsID))
	must.Get(h.DeadLetter(t.Context(), deadLetter.ID))(t)
}

// tombstone returns the row that a buyer's query writes of an order that is lost in an epoch.
func tombstone(goodsID, epoch int64, l reservation.OrderLine, now time.Time) order.Order {
	return order.Order{
		OrderLine: reservation.OrderLine{OrderSn: l.OrderSn, BuyerID: l.BuyerID, Epoch: epoch},
		GoodsID:   goodsID, Status: order.Failed, FailureReason: order.FailedLost,
		CreatedAt: now, ClosedAt: now,
	}
}

// TestWriteTombstone_KeepsALateOrderFailed checks that a tombstone keeps its order failed when the
// late message arrives or is written as failed. The message completes the row and returns its units
// once.
func (h fixture) TestWriteTombstone_KeepsALateOrderFailed(t *testing.T) {
	sale := h.exposed(10, 5)
	lines := h.lines(sale, 4)
	writeTombstone := func(l reservation.OrderLine) (order.Order, error) {
		return h.WriteTombstone(t.Context(), tombstone(sale.GoodsID, sale.Epoch+1, l, today))
	}
	_, err := writeTombstone(lines[0])
	require.ErrorIs(t, err, order.ErrTryAgain, "MySQL is of another epoch than Redis was")
	h.writeAll(sale.GoodsID, lines[1])
	h.beginEpoch(sale.GoodsID)
	for range 2 {
		require.True(t, must.Get(writeTombstone(lines[0]))(t).Tombstone())
	}
	require.Equal(t, order.Created, must.Get(writeTombstone(lines[1]))(t).Status,
		"an existing order gets no tombstone")

	b := batchOf(sale.GoodsID, lines[:3]...)
	b.Epoch, b.Adopted = 2, map[string]int64{lines[2].OrderSn: 1}
	for i := range 2 {
		out := h.write(b)
		require.Equal(t, order.Failed, out.Existing[lines[0].OrderSn])
		require.Len(t, out.Moves, 1-i, "only the first batch returns the units")
	}
	o := h.order(sale.GoodsID, lines[0].OrderSn)
	require.Equal(t, order.FailedLost, o.FailureReason)
	lines[0].Epoch = 2 // of the tombstone
	require.Equal(t, lines[0], o.OrderLine)
	must.Get(writeTombstone(lines[3]))(t)
	none := lines[3]
	none.Quantity = 0
	require.Empty(t, h.writeFailed(sale.GoodsID, none, order.FailedMalformed).Moves)
	for i := range 2 {
		require.Len(t, h.writeFailed(sale.GoodsID, lines[3], order.FailedUnwritten).Moves, 1-i)
	}
	require.Len(t, h.all(sale.GoodsID), len(lines))
	require.EqualValues(t, 2, h.requireBalanced(sale.GoodsID))
	deadLetters := h.deadLetters()
	require.Len(t, deadLetters, 2)
	for _, d := range deadLetters {
		require.Equal(t, order.FailedLost, d.Reason, "as the buyer may have read")
	}
}

// TestWriteTombstone_RacesWithTheLateMessage checks that the buyer's query and a concurrent late
// message agree on one row.
func (h fixture) TestWriteTombstone_RacesWithTheLateMessage(t *testing.T) {
	sale := h.exposed(10, 5)
	for range 10 {
		sale = h.sale(sale.GoodsID)
		l := h.line(sale, 1, 1)
		b := batchOf(sale.GoodsID, l)
		b.Epoch, b.Adopted = h.beginEpoch(sale.GoodsID).Epoch, map[string]int64{l.OrderSn: 1}
		lost := tombstone(sale.GoodsID, b.Epoch, l, today)
		var answer order.Order
		var wg sync.WaitGroup
		wg.Go(func() {
			for answer.Status == "" {
				answer, _ = h.WriteTombstone(t.Context(), lost)
			}
		})
		wg.Go(func() {
			for err := error(order.ErrTryAgain); err != nil; {
				_, err = h.WriteBatch(t.Context(), b)
			}
		})
		wg.Wait()
		o := h.order(sale.GoodsID, l.OrderSn)
		require.Equal(t, o.Status, answer.Status)
		if o.Status == order.Created {
			must.Get(h.CancelOne(sale.GoodsID, l.OrderSn, today))(t)
		}
	}
	require.Zero(t, h.requireBalanced(sale.GoodsID))
}
