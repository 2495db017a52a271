package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/retention"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// placeEvents assigns all positions.
func (h fixture) placeEvents() {
	h.t.Helper()
	for must.Get(h.PlaceEvents(h.t.Context(), 3))(h.t) == 3 {
	}
}

// events places and lists the events of a sale, from the first on.
func (h fixture) events(goodsID int64) (found []event.Event) {
	h.t.Helper()
	h.placeEvents()
	for after := int64(0); ; {
		page := must.Get(h.Events(h.t.Context(), event.Filter{After: after}, 7))(h.t)
		for _, e := range page {
			require.Greater(h.t, e.Position, after, "positions ascend")
			if after = e.Position; e.Sale.GoodsID == goodsID {
				found = append(found, e)
			}
		}
		if len(page) < 7 {
			return found
		}
	}
}

// eventNames lists the events of a sale as "type order".
func (h fixture) eventNames(goodsID int64) []string {
	h.t.Helper()
	return mapSlice(h.events(goodsID), eventName)
}

func eventName(e event.Event) string { return fmt.Sprint(e.Type, " ", e.Order.OrderSn) }

func minutes(n int) time.Time { return today.Add(time.Duration(n) * time.Minute) }

// TestEvents_EveryChangeWritesItsEvent checks the events of each change of a sale and its orders,
// and their order.
func (h fixture) TestEvents_EveryChangeWritesItsEvent(t *testing.T) {
	ctx, sale := t.Context(), h.exposed(3, 5)
	a, b, c, d := h.line(sale, 1, 1), h.line(sale, 2, 1), h.line(sale, 3, 1), h.line(sale, 4, 1)
	h.writeAll(sale.GoodsID, a, b, c, d) // d finds no unit
	must.Get(h.Pay(sale.GoodsID, a.OrderSn, minutes(2)))(t)
	must.Get(h.CancelOne(sale.GoodsID, b.OrderSn, minutes(3)))(t)
	must.Get(h.ExpireDue(ctx, sale.GoodsID, minutes(99), 10))(t)
	lost := h.line(sale, 5, 1)
	must.Get(h.WriteTombstone(ctx, tombstone(sale.GoodsID, sale.Epoch, lost, minutes(100))))(t)
	h.writeFailed(sale.GoodsID, lost, order.FailedLost) // it fills the tombstone
	for _, move := range h.moves(sale.GoodsID) {
		require.NoError(t, h.MarkReleased(ctx, sale.GoodsID, []string{move.ID}, minutes(100)))
	}
	undo := must.Get(h.ScheduleRelease(ctx, sale.GoodsID, d, minutes(101)))(t)
	must.Get(h.RestoreOrder(ctx, h.deadLetters()[0].ID, undo,
		order.Times{Now: minutes(101), PayBy: minutes(120)}))(t)
	cut := must.Get(h.Change(ctx, sale.GoodsID, salechange.Change{StockDelta: -1}, noKey,
		minutes(102)))(t).Cut
	_, _, err := h.EndCut(ctx, *cut, order.MoveApplied, minutes(102))
	require.NoError(t, err)
	must.Get(h.CloseSale(ctx, sale.GoodsID, minutes(103)))(t)
	must.Get(h.CloseSale(ctx, sale.GoodsID, minutes(104)))(t)
	require.Equal(t, []string{
		"sale.exposed ", "order.failed " + d.OrderSn, "order.created " + a.OrderSn,
		"order.created " + b.OrderSn, "order.created " + c.OrderSn, "sale.sold_out ",
		"order.paid " + a.OrderSn, "order.cancelled " + b.OrderSn, "order.expired " + c.OrderSn,
		"order.failed " + lost.OrderSn, "order.created " + d.OrderSn, "sale.sold_out ",
		"sale.closed ",
	}, h.eventNames(sale.GoodsID))
	for _, e := range h.events(sale.GoodsID) {
		require.Equal(t, h.sale(sale.GoodsID), e.Sale)
		if e.Order.OrderSn != "" {
			require.Equal(t, h.order(sale.GoodsID, e.Order.OrderSn), e.Order)
		}
	}
}

// TestEvents_KeepTheirOrderWhereClocksLag checks that a change comes after the order's last one
// also where the clock of its program is behind.
func (h fixture) TestEvents_KeepTheirOrderWhereClocksLag(t *testing.T) {
	ctx, sale := t.Context(), h.exposed(4, 5)
	a, b, c := h.line(sale, 1, 1), h.line(sale, 2, 1), h.line(sale, 3, 1)
	h.writeAll(sale.GoodsID, a, b, c)
	must.Get(h.Pay(sale.GoodsID, a.OrderSn, today))(t)
	must.Get(h.CancelOne(sale.GoodsID, b.OrderSn, today))(t)
	must.Get(h.Pay(sale.GoodsID, c.OrderSn, minutes(2)))(t)
	must.Get(h.CancelForMerchant(seller(t), sale.GoodsID, c.OrderSn, order.Paid, minutes(1)))(t)
	must.Get(h.CloseSale(ctx, sale.GoodsID, today))(t)
	found := h.events(sale.GoodsID)
	require.Equal(t, []string{
		"sale.exposed ", "order.created " + a.OrderSn, "order.created " + b.OrderSn,
		"order.created " + c.OrderSn, "order.paid " + a.OrderSn, "order.cancelled " + b.OrderSn,
		"order.paid " + c.OrderSn, "order.cancelled " + c.OrderSn, "sale.closed ",
	}, mapSlice(found, eventName))
	require.Equal(t, today.Add(time.Millisecond), found[0].At, "after the sale's creation")
	require.Equal(t, minutes(2).Add(time.Millisecond), found[8].At)
}

// TestEvents_TransactionsOfASaleShareNoTime makes all changes at one moment, as clocks that lag
// show it. The events are in the order of the transactions and not of their types.
func (h fixture) TestEvents_TransactionsOfASaleShareNoTime(t *testing.T) {
	sale := h.exposed(2, 5)
	a, b, c, d := h.line(sale, 1, 1), h.line(sale, 2, 1), h.line(sale, 3, 1), h.line(sale, 4, 1)
	write := func(l reservation.OrderLine) {
		batch := batchOf(sale.GoodsID, l)
		batch.Now = today
		h.write(batch)
	}
	write(a)
	must.Get(h.CancelOne(sale.GoodsID, a.OrderSn, today))(t)
	write(b)
	write(c)
	write(d) // finds no unit
	lost := h.line(sale, 5, 1)
	must.Get(h.WriteTombstone(t.Context(), tombstone(sale.GoodsID, sale.Epoch, lost, today)))(t)
	must.Get(h.Pay(sale.GoodsID, c.OrderSn, today))(t)
	shipment := order.Shipment{Carrier: "DHL", TrackingNumber: "1"}
	must.Get(h.Ship(seller(t), sale.GoodsID, c.OrderSn, shipment, today))(t)
	must.Get(h.CancelOne(sale.GoodsID, b.OrderSn, today))(t)
	found := h.events(sale.GoodsID)
	require.Equal(t, []string{
		"sale.exposed ", "order.created " + a.OrderSn, "order.cancelled " + a.OrderSn,
		"order.created " + b.OrderSn, "order.created " + c.OrderSn, "sale.sold_out ",
		"order.failed " + d.OrderSn, "order.failed " + lost.OrderSn, "order.paid " + c.OrderSn,
		"order.shipped " + c.OrderSn, "order.cancelled " + b.OrderSn,
	}, mapSlice(found, eventName))
	for i, e := range found[1:] {
		oneChange := e.Type == event.SaleSoldOut || e.Type == event.OrderShipped
		require.True(t, e.At.After(found[i].At) || oneChange,
			"%s is not after the one before", e.Type)
	}
}

// TestEvents_RestoredOrderIsPaidAfterItsCreation pays an order by a clock that is behind that of
// the program which restored it.
func (h fixture) TestEvents_RestoredOrderIsPaidAfterItsCreation(t *testing.T) {
	sale := h.exposed(4, 5)
	l, deadLetter := h.writeFailedOrder(sale, 1, 1)
	undo := must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, l, minutes(9)))(t)
	must.Get(h.RestoreOrder(t.Context(), deadLetter.ID, undo,
		order.Times{Now: minutes(5), PayBy: minutes(60)}))(t)
	must.Get(h.Pay(sale.GoodsID, l.OrderSn, minutes(4)))(t)
	require.Equal(t, []string{
		"sale.exposed ", "order.failed " + l.OrderSn, "order.created " + l.OrderSn,
		"order.paid " + l.OrderSn,
	}, h.eventNames(sale.GoodsID))
}

// TestEvents_ClosedSaleIsNotSoldOut checks that sale.closed is the last event of a sale whose last
// order was on its way when it was closed. The status of sale.sold_out, exposed, would open the
// sale again in the merchant's program.
func (h fixture) TestEvents_ClosedSaleIsNotSoldOut(t *testing.T) {
	sale := h.exposed(1, 5)
	must.Get(h.CloseSale(t.Context(), sale.GoodsID, minutes(1)))(t)
	l := h.line(sale, 1, 1)
	h.writeAll(sale.GoodsID, l)
	require.Equal(t, []string{"sale.exposed ", "sale.closed ", "order.created " + l.OrderSn},
		h.eventNames(sale.GoodsID))
}

// TestEvents_UnwrittenChangesHaveNoEvents checks that refused and repeated changes write no events.
func (h fixture) TestEvents_UnwrittenChangesHaveNoEvents(t *testing.T) {
	sale := h.exposed(5, 5)
	l := h.line(sale, 1, 1)
	h.writeAll(sale.GoodsID, l)
	h.writeAll(sale.GoodsID, l)
	must.Get(h.Pay(sale.GoodsID, l.OrderSn, today))(t)
	must.Get(h.Pay(sale.GoodsID, l.OrderSn, today))(t)
	_, err := h.CancelOne(sale.GoodsID, l.OrderSn, today)
	requireConflict(t, err)
	h.writeFailed(sale.GoodsID, l, order.FailedUnwritten)
	h.writeFailed(44, h.line(seckill.Sale{GoodsID: 44}, 1, 1), order.FailedNoSale)
	require.Equal(t, []string{
		"sale.exposed ", "order.created " + l.OrderSn, "order.paid " + l.OrderSn,
	}, h.eventNames(sale.GoodsID))
	require.EqualValues(t, 3, must.Get(h.EventHead(t.Context()))(t))
}

// TestEvents_FiltersByMerchantTypeAndPosition checks the filter, also within the events of a batch.
func (h fixture) TestEvents_FiltersByMerchantTypeAndPosition(t *testing.T) {
	ctx := t.Context()
	require.Zero(t, must.Get(h.EventHead(ctx))(t))
	mine, others := h.beginEpoch(h.draft(1, 2000, 5).GoodsID), h.beginEpoch(h.draft(2, 9, 5).GoodsID)
	lines := h.lines(mine, eventsPerRow+100)
	h.writeAll(mine.GoodsID, lines...)
	h.writeAll(others.GoodsID, h.line(others, 1, 1))
	h.placeEvents()
	positions := func(f event.Filter, limit int) []int64 {
		return mapSlice(must.Get(h.Events(ctx, f, limit))(t), func(e event.Event) int64 {
			return e.Position
		})
	}
	head := must.Get(h.EventHead(ctx))(t)
	require.EqualValues(t, eventsPerRow+103, head)
	require.Len(t, positions(event.Filter{}, 5000), int(head))
	require.Len(t, positions(event.Filter{MerchantID: "1"}, 5000), len(lines)+1)
	require.Len(t, positions(event.Filter{MerchantID: "2"}, 5000), 2)
	require.Empty(t, positions(event.Filter{MerchantID: "3"}, 5000))
	created := event.Filter{Types: []event.Type{event.OrderCreated}, MerchantID: "1"}
	found := must.Get(h.Events(ctx, created, 5000))(t)
	require.ElementsMatch(t, numbersOf(lines),
		mapSlice(found, func(e event.Event) string { return e.Order.OrderSn }))
	all := mapSlice(found, func(e event.Event) int64 { return e.Position })
	created.After, created.To = all[10], all[20]
	require.Equal(t, all[11:21], positions(created, 5000))
	require.Equal(t, all[11:14], positions(created, 3))
	created.To = all[len(all)-1]
	require.Equal(t, all[11:], positions(created, 5000))
}

// TestEvents_LateCommitIsNotMissed checks that a reader gets an event whose transaction began
// before others and commits after they were placed.
func TestEvents_LateCommitIsNotMissed(t *testing.T) {
	t.Parallel()
	onEachMigrated(t, sqlServers, func(t *testing.T, h fixture) {
		slow, quick := h.exposed(5, 5), h.exposed(5, 5)
		l := h.line(slow, 1, 1)
		open, commit := make(chan bool), make(chan bool)
		ended := make(chan error)
		go func() {
			_, err := inSaleTx(t.Context(), h.Store, "write slowly", slow.GoodsID,
				func(tx *gorm.DB, sale saleRow) (out order.Outcome, err error) {
					out, err = writeBatch(tx, sale, batchOf(slow.GoodsID, l))
					close(open)
					<-commit
					return out, err
				})
			ended <- err
		}()
		<-open
		fast := h.writeOrder(quick, 1)
		require.Equal(t, []string{"sale.exposed ", "order.created " + fast},
			h.eventNames(quick.GoodsID))
		head := must.Get(h.EventHead(t.Context()))(t)
		close(commit)
		require.NoError(t, <-ended)
		h.placeEvents()
		found := must.Get(h.Events(t.Context(), event.Filter{After: head}, 10))(t)
		require.Equal(t, []string{"order.created " + l.OrderSn}, mapSlice(found, eventName))
	})
}

// TestEvents_ReaderGetsEachOnceInOrder checks a reader that follows the head while several writers
// and sequencers run. It gets every event once, and those of each order in order.
func TestEvents_ReaderGetsEachOnceInOrder(t *testing.T) {
	t.Parallel()
	onEachMigrated(t, databases, func(t *testing.T, h fixture) {
		const sales, batches, size = 3, 5, 20
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var writers, sequencers sync.WaitGroup
		for range sales {
			sale := h.exposed(1000, 5)
			writers.Go(func() { h.rush(sale, batches, size) })
		}
		for range 2 {
			sequencers.Go(func() {
				for ctx.Err() == nil {
					if _, err := h.PlaceEvents(ctx, 5); err != nil {
						require.True(h.t, errors.Is(err, order.ErrTryAgain) || ctx.Err() != nil,
							"%v", err)
					}
				}
			})
		}
		var got []event.Event
		read := func() bool {
			f := event.Filter{}
			if len(got) > 0 {
				f.After = got[len(got)-1].Position
			}
			got = append(got, must.Get(h.Events(t.Context(), f, 17))(t)...)
			return len(got) == sales*(1+2*batches*size)
		}
		require.Eventually(t, read, 2*time.Minute, time.Millisecond)
		writers.Wait()
		cancel()
		sequencers.Wait()
		require.True(t, read(), "the reader got an event that nobody wrote")
		seen := map[string]int{}
		for i, e := range got {
			name := eventName(e)
			require.False(t, seen[name] > 0 && e.Order.OrderSn != "", "%s twice", name)
			seen[name]++
			if i > 0 {
				require.Greater(t, e.Position, got[i-1].Position)
			}
			if e.Type != event.OrderCreated && e.Order.OrderSn != "" {
				require.Equal(t, 1, seen["order.created "+e.Order.OrderSn], name)
			}
		}
	})
}

// rush writes batches of orders; each order is then paid or cancelled.
func (h fixture) rush(sale seckill.Sale, batches, size int) {
	for range batches {
		lines := h.lines(sale, size)
		for i := range lines {
			lines[i].BuyerID = fmt.Sprint(serial.Add(1))
		}
		h.writeAll(sale.GoodsID, lines...)
		for i, l := range lines {
			if i%2 == 0 {
				must.Get(h.Pay(sale.GoodsID, l.OrderSn, minutes(2)))(h.t)
			} else {
				must.Get(h.CancelOne(sale.GoodsID, l.OrderSn, today))(h.t)
			}
		}
	}
}

// TestForgetEvents_DeletesOldOnesFromTheFirst checks that old events are deleted in batches, and
// that positions go on after them.
func (h fixture) TestForgetEvents_DeletesOldOnesFromTheFirst(t *testing.T) {
	ctx, sale := t.Context(), h.exposed(20, 5)
	for i := range int64(5) {
		h.writeOrder(sale, i+1)
	}
	require.Zero(t, must.Get(h.Forget(ctx, retention.Events, minutes(9), 3))(t), "not placed yet")
	h.placeEvents()
	require.Zero(t, must.Get(h.Forget(ctx, retention.Events, today, 3))(t), "not old yet")
	require.Equal(t, 1, must.Get(h.Forget(ctx, retention.Events, minutes(1), 3))(t), "the exposure")
	require.Equal(t, 3, must.Get(h.Forget(ctx, retention.Events, minutes(2), 3))(t))
	require.Equal(t, 2, must.Get(h.Forget(ctx, retention.Events, minutes(2), 3))(t))
	h.writeOrder(sale, 9)
	found := h.events(sale.GoodsID)
	require.Len(t, found, 1)
	require.EqualValues(t, 7, found[0].Position)
}
