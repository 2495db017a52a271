package sqlstore

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/property"
)

// TestStore_MatchesModel runs random operations against a store and compares it with maps that
// predict its state.
func TestStore_MatchesModel(t *testing.T) {
	t.Parallel()
	store := newFixture(t, sqliteFile(t))
	property.Check(t, func(rt *rapid.T) {
		units := rapid.Int64Range(1, 12).Draw(rt, "units")
		limit := rapid.Int64Range(1, 4).Draw(rt, "limit")
		m := &model{
			fixture: store, sale: store.exposed(units, limit), now: today,
			orders: make(map[string]*order.Order), held: make(map[string]int64),
			parked: make(map[string]reservation.OrderLine),
		}
		m.stock = m.sale.Total
		rt.Repeat(map[string]func(*rapid.T){
			"batch": m.batch, "failed": m.failed, "pay": m.pay, "cancel": m.cancel,
			"expire": m.expire, "epoch": m.epoch, "close": m.close, "release": m.markReleased,
			"": m.check,
		})
		released := mapSlice(m.moves, func(move order.StockMove) string { return move.ID })
		require.NoError(rt, store.MarkReleased(rt.Context(), m.sale.GoodsID, released, today),
			"the next run needs a store without moves")
	})
}

// model predicts the state of one goods.
type model struct {
	fixture
	sale   seckill.Sale // the operations keep its epoch and status up to date
	now    time.Time
	stock  int64
	lines  []reservation.OrderLine // all minted order numbers
	orders map[string]*order.Order
	parked map[string]reservation.OrderLine
	held   map[string]int64
	moves  []order.StockMove // the unreleased moves
}

func (m *model) batch(rt *rapid.T) {
	var group []reservation.OrderLine
	for range rapid.IntRange(1, 6).Draw(rt, "lines") {
		if len(m.lines) > 0 && rapid.Bool().Draw(rt, "again") {
			group = append(group, rapid.SampledFrom(m.lines).Draw(rt, "line"))
			continue
		}
		l := m.line(m.sale, rapid.Int64Range(1, 5).Draw(rt, "buyer"),
			rapid.Int64Range(1, 4).Draw(rt, "quantity"))
		m.lines, group = append(m.lines, l), append(group, l)
	}
	if rapid.Bool().Draw(rt, "optimistic") {
		m.optimism.paused.Store(0)
	}
	b := batchOf(m.sale.GoodsID, group...)
	payWithin := time.Duration(rapid.IntRange(0, 5).Draw(rt, "payWithin")) * time.Minute
	b.Now, b.PayBy = m.now, m.now.Add(payWithin)
	out, err := m.WriteBatch(rt.Context(), b)
	if adopt, ok := errors.AsType[*orderwriter.AdoptError](err); ok {
		require.Equal(rt, m.notAdopted(group), adopt.OrderSns)
		b.Park = rapid.Bool().Draw(rt, "park")
		b.Epoch, b.Adopted = adopt.Epoch, make(map[string]int64)
		for _, l := range group {
			if !b.Park || rapid.Bool().Draw(rt, "adopted") {
				b.Adopted[l.OrderSn] = l.Quantity
			}
		}
		out, err = m.WriteBatch(rt.Context(), b)
	} else {
		require.Empty(rt, m.notAdopted(group))
	}
	require.NoError(rt, err)
	m.wrote(rt, b, out)
}

// notAdopted returns the numbers of older epochs that have no row.
func (m *model) notAdopted(group []reservation.OrderLine) []string {
	var sns []string
	for _, l := range group {
		if l.Epoch < m.sale.Epoch && m.orders[l.OrderSn] == nil &&
			!slices.Contains(sns, l.OrderSn) {
			sns = append(sns, l.OrderSn)
		}
	}
	return sns
}

// wrote predicts the outcome of a batch, order by order, and compares it with the outcome of the
// store.
func (m *model) wrote(rt *rapid.T, b orderwriter.Batch, out order.Outcome) {
	judged := make(map[string]bool)
	created, failed, existing := []string(nil), map[string]order.FailureReason{}, map[string]order.Status{}
	for _, l := range b.Lines {
		known := m.orders[l.OrderSn]
		late := l.Epoch < m.sale.Epoch
		if late && !judged[l.OrderSn] {
			delete(m.parked, l.OrderSn)
		}
		switch {
		case judged[l.OrderSn]:
		case known != nil:
			existing[l.OrderSn] = known.Status
		case late && b.Adopted[l.OrderSn] != l.Quantity:
			m.parked[l.OrderSn] = l
		case m.held[l.BuyerID]+l.Quantity > m.sale.MaxPerBuyerLimit:
			failed[l.OrderSn] = order.FailedOverLimit
			m.put(rt, b, l, order.Failed, order.FailedOverLimit)
		case l.Quantity > m.stock:
			failed[l.OrderSn] = order.FailedOversold
			m.put(rt, b, l, order.Failed, order.FailedOversold)
		default:
			created = append(created, l.OrderSn)
			m.put(rt, b, l, order.Created, "")
			m.stock, m.held[l.BuyerID] = m.stock-l.Quantity, m.held[l.BuyerID]+l.Quantity
		}
		judged[l.OrderSn] = true
	}
	require.Equal(rt, created, out.Created)
	require.True(rt, maps.Equal(existing, out.Existing), "%v, not %v", out.Existing, existing)
	require.True(rt, maps.Equal(failed, out.Failed), "%v, not %v", out.Failed, failed)
	require.Len(rt, out.Moves, len(failed))
	m.moves = append(m.moves, out.Moves...)
}

// put predicts a written order. The store chooses its time: the batch's, or one after the sale's
// last change.
func (m *model) put(
	rt *rapid.T, b orderwriter.Batch, l reservation.OrderLine, status order.Status,
	why order.FailureReason,
) {
	at := must.Get(m.find(b.GoodsID, l.OrderSn))(rt).CreatedAt
	require.False(rt, at.Before(b.Now))
	o := &order.Order{
		OrderLine: l, GoodsID: b.GoodsID,
		Amount: l.Quantity * m.sale.Price, Status: status, FailureReason: why, CreatedAt: at,
		PayBy: b.PayBy,
	}
	if status == order.Failed {
		o.PayBy, o.ClosedAt = time.Time{}, at
	}
	m.orders[l.OrderSn] = o
}

func (m *model) failed(rt *rapid.T) {
	l := m.line(m.sale, 1, 1)
	if len(m.lines) > 0 && rapid.Bool().Draw(rt, "again") {
		l = rapid.SampledFrom(m.lines).Draw(rt, "line")
	} else {
		m.lines = append(m.lines, l)
	}
	b := batchOf(m.sale.GoodsID, l)
	out := must.Get(m.WriteFailed(rt.Context(), l,
		order.DeadLetter{GoodsID: m.sale.GoodsID, Reason: order.FailedLost}, m.now))(rt)
	delete(m.parked, l.OrderSn)
	if known := m.orders[l.OrderSn]; known != nil {
		require.Equal(rt, map[string]order.Status{l.OrderSn: known.Status}, out.Existing)
		return
	}
	b.Now = m.now
	m.put(rt, b, l, order.Failed, order.FailedLost)
	m.moves = append(m.moves, out.Moves...)
}

// someOrder draws an order that has a row. It skips the operation if there is none.
func (m *model) someOrder(rt *rapid.T) *order.Order {
	if len(m.orders) == 0 {
		rt.Skip("no orders yet")
	}
	return m.orders[rapid.SampledFrom(slices.Sorted(maps.Keys(m.orders))).Draw(rt, "order")]
}

func (m *model) pay(rt *rapid.T) {
	o := m.someOrder(rt)
	got, err := m.Pay(m.sale.GoodsID, o.OrderSn, m.now)
	if o.Status == order.Created && m.now.Before(o.PayBy) {
		o.Status, o.PaidAt = order.Paid, m.now
	}
	if o.Status != order.Paid {
		require.Equal(rt, apierror.Conflict, apierror.ReasonOf(err))
		return
	}
	require.NoError(rt, err)
	require.Equal(rt, *o, got)
}

func (m *model) cancel(rt *rapid.T) {
	o := m.someOrder(rt)
	was := o.Status
	got, err := m.CancelOne(m.sale.GoodsID, o.OrderSn, m.now)
	if was == order.Created {
		m.end(o, order.Cancelled)
		require.NotNil(rt, got.Move)
		m.moves = append(m.moves, *got.Move)
	}
	if o.Status != order.Cancelled {
		require.Equal(rt, apierror.Conflict, apierror.ReasonOf(err))
		return
	}
	require.NoError(rt, err)
	require.Equal(rt, *o, got.Order)
	require.Equal(rt, was == order.Created, got.Move != nil)
}

func (m *model) end(o *order.Order, status order.Status) {
	o.Status, o.ClosedAt = status, m.now
	m.stock, m.held[o.BuyerID] = m.stock+o.Quantity, m.held[o.BuyerID]-o.Quantity
}

func (m *model) expire(rt *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(0, 4).Draw(rt, "minutes")) * time.Minute)
	limit := rapid.IntRange(1, 3).Draw(rt, "limit")
	moves := must.Get(m.ExpireDue(rt.Context(), m.sale.GoodsID, m.now, limit))(rt)
	due := 0
	for _, o := range m.orders {
		if o.Status == order.Created && !m.now.Before(o.PayBy) {
			due++
		}
	}
	require.Len(rt, moves, min(due, limit))
	for _, move := range moves {
		o := m.orders[move.OrderSn]
		require.True(rt, o.Status == order.Created && !m.now.Before(o.PayBy),
			"ExpireDue expires overdue orders only")
		m.end(o, order.Expired)
	}
	m.moves = append(m.moves, moves...)
}

func (m *model) epoch(rt *rapid.T) {
	before := m.fixture.moves(m.sale.GoodsID)
	sale := m.beginEpoch(m.sale.GoodsID)
	m.writeParked(rt, before)
	require.Equal(rt, m.sale.Epoch+1, sale.Epoch)
	require.Equal(rt, m.sale.Status, sale.Status)
	m.sale.Epoch++
	held := make(map[string]int64)
	for _, o := range m.heldOrders(sale) {
		require.True(rt, holdsUnits(m.orders[o.OrderSn].Status))
		held[o.BuyerID] += o.Quantity
	}
	require.Equal(rt, m.holders(), held)
}

// writeParked predicts what the beginning of an epoch wrote, after the given moves.
func (m *model) writeParked(rt *rapid.T, before []order.StockMove) {
	b := batchOf(m.sale.GoodsID)
	b.Now, b.PayBy, b.Adopted = today, at(today).PayBy, make(map[string]int64)
	for _, sn := range slices.Sorted(maps.Keys(m.parked)) {
		b.Lines = append(b.Lines, m.parked[sn])
		b.Adopted[sn] = m.parked[sn].Quantity
	}
	out := order.Outcome{
		Existing: make(map[string]order.Status), Failed: make(map[string]order.FailureReason),
	}
	for _, move := range m.fixture.moves(m.sale.GoodsID) {
		if !slices.Contains(before, move) {
			out.Moves = append(out.Moves, move)
		}
	}
	for _, l := range b.Lines {
		switch o, err := m.find(m.sale.GoodsID, l.OrderSn); {
		case m.orders[l.OrderSn] != nil:
			out.Existing[l.OrderSn] = m.orders[l.OrderSn].Status
		case err != nil:
			rt.Fatalf("parked order %s was not written: %v", l.OrderSn, err)
		case o.Status == order.Failed:
			out.Failed[l.OrderSn] = o.FailureReason
		default:
			out.Created = append(out.Created, l.OrderSn)
		}
	}
	m.wrote(rt, b, out)
}

func (m *model) close(rt *rapid.T) {
	sale := must.Get(m.CloseSale(rt.Context(), m.sale.GoodsID, m.now))(rt)
	m.sale.Status = sale.Status
	require.Equal(rt, seckill.Closed, sale.Status)
}

func (m *model) markReleased(rt *rapid.T) {
	if len(m.moves) == 0 {
		rt.Skip("nothing to release")
	}
	i := rapid.IntRange(0, len(m.moves)-1).Draw(rt, "move")
	require.NoError(rt,
		m.MarkReleased(rt.Context(), m.sale.GoodsID, []string{m.moves[i].ID}, m.now))
	m.moves = slices.Delete(m.moves, i, i+1)
}

func (m *model) holders() map[string]int64 {
	held := maps.Clone(m.held)
	maps.DeleteFunc(held, func(_ string, n int64) bool { return n == 0 })
	return held
}

// check compares the state of the store with the prediction.
func (m *model) check(rt *rapid.T) {
	require.Equal(rt, m.stock, must.Get(m.Sale(rt.Context(), m.sale.GoodsID))(rt).Stock)
	require.Equal(rt, m.holders(), m.fixture.held(m.sale.GoodsID))
	rows := m.all(m.sale.GoodsID)
	require.Len(rt, rows, len(m.orders))
	for _, o := range rows {
		require.Equal(rt, *m.orders[o.OrderSn], o)
	}
	require.ElementsMatch(rt, m.moves, m.fixture.moves(m.sale.GoodsID))
	require.ElementsMatch(rt, slices.Collect(maps.Keys(m.parked)),
		m.fixture.parked(m.sale.GoodsID))
}
