package sqlstore

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// payment returns a payment of a sale's order of one unit.
func (h fixture) payment(sale seckill.Sale, id, sn string) payment.Payment {
	return payment.Payment{ID: id, GoodsID: sale.GoodsID, OrderSn: sn, Amount: sale.Price}
}

// TestReceive_RefundsWhatAnOrderCannotKeep checks that an order keeps its first payment in time and
// that every other payment is refunded. A repeated payment gets the same answer. An order that
// costs nothing keeps a payment of nothing.
func (h fixture) TestReceive_RefundsWhatAnOrderCannotKeep(t *testing.T) {
	sale := h.exposed(10, 5)
	paid, late := h.writeOrder(sale, 1), h.writeOrder(sale, 2)
	cancelled, expired := h.writeOrder(sale, 3), h.writeOrder(sale, 4)
	failed := h.line(sale, 5, 1)
	h.writeFailed(sale.GoodsID, failed, order.FailedUnwritten)
	now, payBy := today.Add(5*time.Minute), today.Add(16*time.Minute)
	must.Get(h.CancelOne(sale.GoodsID, cancelled, now))(t)
	for _, c := range []struct {
		id, sn string
		at     time.Time
		state  payment.State
		reason payment.RefundReason
		status order.Status
	}{
		{"p-1", paid, payBy.Add(-time.Millisecond), payment.Kept, "", order.Paid},
		{"p-2", paid, now, payment.Refunding, payment.RefundSecond, order.Paid},
		{"p-3", late, payBy, payment.Refunding, payment.RefundLate, order.Created},
		{"p-4", cancelled, now, payment.Refunding, payment.RefundCancelled, order.Cancelled},
		{"p-5", failed.OrderSn, now, payment.Refunding, payment.RefundFailed, order.Failed},
		{"p-1", paid, payBy.Add(time.Hour), payment.Kept, "", order.Paid},
		{"p-3", late, now, payment.Refunding, payment.RefundLate, order.Created},
		{strings.Repeat("p", 64), expired, now, payment.Kept, "", order.Paid},
	} {
		p := h.payment(sale, c.id, c.sn)
		if c.sn == failed.OrderSn {
			p.Amount = h.order(sale.GoodsID, c.sn).Amount
		}
		r := must.Get(h.receiveOne(p, c.at))(t, c.id)
		require.Equal(t, c.state, r.State, c.id)
		require.Equal(t, c.reason, r.Reason, c.id)
		require.Equal(t, c.status, r.Order.Status, c.id)
		require.Equal(t, p, r.Payment)
	}
	for _, amount := range []int64{1, sale.Price - 1, sale.Price + 1} {
		p := h.payment(sale, fmt.Sprintf("wrong-%d", amount), late)
		p.Amount = amount
		for range 2 {
			r := must.Get(h.receiveOne(p, now))(t)
			require.Equal(t, payment.Refunding, r.State)
			require.Equal(t, payment.RefundAmount, r.Reason)
			require.Equal(t, order.Created, r.Order.Status)
		}
		require.Contains(t, must.Get(h.DueRefunds(t.Context(), now, 100))(t),
			payment.Refund{Payment: p, Reason: payment.RefundAmount, NextAt: now},
			"the amount that was paid")
	}
	for name, p := range map[string]payment.Payment{
		"nothing":                {ID: "p-9", GoodsID: sale.GoodsID, OrderSn: late},
		"another order's number": h.payment(sale, "p-1", late),
		"another amount later":   {ID: "p-1", GoodsID: sale.GoodsID, OrderSn: paid, Amount: 1},
	} {
		_, err := h.receiveOne(p, now)
		requireConflict(t, err, name)
	}
	_, err := h.receiveOne(h.payment(sale, "p-9", "0"), now)
	require.ErrorIs(t, err, order.ErrNoSuchOrder)
	free := h.exposed(10, 5)
	require.NoError(t, h.db.Exec("UPDATE sales SET price = 0 WHERE goods_id = ?",
		free.GoodsID).Error)
	must.Get(h.Pay(free.GoodsID, h.writeOrder(free, 1), now))(t)
	require.Equal(t, order.Created, h.order(sale.GoodsID, late).Status,
		"a refused payment changes nothing")
	h.requireBalanced(sale.GoodsID)
}

// TestReceive_BatchHasOneReceiptEach checks that a batch decides on its payments one after the
// other, and that a repetition gets the same answers. A refused payment does not affect the others,
// even if the database refuses the statement because the number belongs to a payment of another
// goods.
func (h fixture) TestReceive_BatchHasOneReceiptEach(t *testing.T) {
	now, other := today.Add(5*time.Minute), h.exposed(10, 5)
	must.Get(h.receiveOne(h.payment(other, "taken", h.writeOrder(other, 1)), now))(t)
	refused := []string{"", "taken"}
	if !isSQLite(h.db) { // which stores a number of any length
		refused = append(refused, strings.Repeat("p", payment.MaxPaymentID+1))
	}
	for n, id := range refused {
		sale := h.exposed(10, 5)
		one, two := h.writeOrder(sale, 1), h.writeOrder(sale, 2)
		named := func(id, sn string) payment.Payment {
			return h.payment(sale, fmt.Sprintf("%s-%d", id, n), sn)
		}
		wrong := named("wrong", two)
		wrong.Amount++
		type member struct {
			payment.Payment
			state  payment.State // "" of a refused one
			reason payment.RefundReason
		}
		batch := []member{
			{named("b", one), payment.Kept, ""},
			{named("a", one), payment.Refunding, payment.RefundSecond},
			{wrong, payment.Refunding, payment.RefundAmount},
			{named("b", one), payment.Kept, ""},
			{named("a", two), "", ""},
			{named("lost", "0"), "", ""},
			{named("c", two), payment.Kept, ""},
		}
		if id != "" {
			batch = append(batch, member{h.payment(sale, id, two), "", ""})
		}
		payments := mapSlice(batch, func(m member) payment.Payment { return m.Payment })
		for range 2 {
			list := must.Get(h.Receive(t.Context(), sale.GoodsID, payments, now))(t)
			require.Len(t, list, len(batch))
			for i, r := range list {
				require.Equal(t, batch[i].state, r.State, "payment %d", i)
				require.Equal(t, batch[i].reason, r.Reason, "payment %d", i)
				switch {
				case batch[i].OrderSn == "0":
					require.ErrorIs(t, r.Err, order.ErrNoSuchOrder)
				case len(batch[i].ID) > payment.MaxPaymentID:
					require.True(t, isDataError(r.Err), "%v", r.Err)
				case r.State == "":
					require.Equal(t, apierror.Conflict, apierror.ReasonOf(r.Err), "payment %d", i)
				default:
					require.NoError(t, r.Err)
					require.Equal(t, batch[i].Payment, r.Payment)
					if r.Reason != payment.RefundAmount { // decided before the order was paid
						require.Equal(t, order.Paid, r.Order.Status)
					}
				}
			}
		}
		h.requireBalanced(sale.GoodsID)
	}
	require.Len(t, must.Get(h.DueRefunds(t.Context(), now, 10))(t), 2*len(refused))
}

// TestDueRefunds_ManyDelayNoNewOne has refunds that wait for a slow provider, or that it refuses
// again and again. They leave half of a list to new ones, the last one first. Each refund is listed
// once.
func (h fixture) TestDueRefunds_ManyDelayNoNewOne(t *testing.T) {
	sale, ctx := h.exposed(20, 20), t.Context()
	var all []string
	add := func(at time.Time) {
		sn := h.writeOrder(sale, int64(len(all)))
		id := fmt.Sprintf("p-%d", len(all))
		must.Get(h.receiveOne(h.payment(sale, id, sn), at))(t)
		all = append(all, id)
	}
	listed := func(at time.Time, limit int) (ids []string) {
		for _, r := range must.Get(h.DueRefunds(ctx, at, limit))(t) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	now := today.Add(24 * time.Hour)
	for i := range 6 {
		add(now.Add(time.Duration(i) * time.Second))
	}
	now = now.Add(time.Minute)
	require.Equal(t, []string{all[5], all[4], all[0], all[1]}, listed(now, 4), "none was tried")
	require.Equal(t, all, listed(now, 7))
	require.Equal(t, all[:1], listed(now, 1))

	for _, r := range must.Get(h.DueRefunds(ctx, now, 7))(t) {
		require.True(t, must.Get(h.ClaimRefund(ctx, r, now))(t))
	}
	add(now.Add(time.Second)) // before the failed ones are due again
	now = now.Add(time.Hour)
	require.Equal(t, all[6], listed(now, 4)[0])
	require.Len(t, listed(now, 4), 4)
	require.ElementsMatch(t, all, listed(now, 7))
}

// TestClaimRefund_HasOneWinner checks that one of several concurrent callers gets the attempt of a
// refund. A refunded payment is never due again.
func (h fixture) TestClaimRefund_HasOneWinner(t *testing.T) {
	sale := h.exposed(10, 5)
	sn := h.writeOrder(sale, 1)
	now := today.Add(time.Hour)
	must.Get(h.receiveOne(h.payment(sale, "late-"+sn, sn), now))(t)
	due := func(at time.Time) []payment.Refund {
		return must.Get(h.DueRefunds(t.Context(), at, 10))(t)
	}
	require.Empty(t, due(now.Add(-time.Millisecond)))
	first := due(now)
	require.Equal(t, []payment.Refund{
		{Payment: h.payment(sale, "late-"+sn, sn), Reason: payment.RefundLate, NextAt: now},
	}, first)
	var claimed atomic.Int64
	var g errgroup.Group
	for range 6 {
		g.Go(func() error {
			return retry(t.Context(), func() error {
				mine, err := h.ClaimRefund(t.Context(), first[0], now)
				if mine {
					claimed.Add(1)
				}
				return err
			})
		})
	}
	require.NoError(t, g.Wait())
	require.EqualValues(t, 1, claimed.Load())
	require.Empty(t, due(now.Add(12*time.Second-time.Millisecond)))
	next := due(now.Add(time.Minute))
	require.Equal(t, 1, next[0].Attempts)
	require.NoError(t, h.MarkRefunded(t.Context(), next[0].Payment, now))
	require.NoError(t, h.MarkRefunded(t.Context(), next[0].Payment, now.Add(time.Hour)))
	require.Empty(t, due(now.Add(24*time.Hour)))
	require.False(t, must.Get(h.ClaimRefund(t.Context(), next[0], now))(t))
	require.Equal(t, payment.Refunded,
		must.Get(h.receiveOne(next[0].Payment, now))(t).State)
	var row paymentRow
	require.NoError(t, h.read(t.Context()).Where("payment_id = ?", next[0].ID).Take(&row).Error)
	require.Equal(t, now.UnixMilli(), *row.RefundedAt, "the first mark counts")
}

// TestSchema_KeepsOnePaymentPerOrder checks that the constraints of the table let an order keep one
// payment, and exclude a payment that is both kept and refunded.
func (h fixture) TestSchema_KeepsOnePaymentPerOrder(t *testing.T) {
	row := paymentRow{
		PaymentID: "a", GoodsID: 1, OrderSn: "o", State: payment.Kept, Kept: new(int64(1)),
	}
	require.NoError(t, h.db.Create(&row).Error)
	row.PaymentID = "b"
	require.True(t, isDuplicate(h.db.Create(&row).Error))
	row.State, row.PaymentID = payment.Refunded, "c"
	require.Error(t, h.db.Create(&row).Error, "a kept payment cannot be refunded")
	row.Kept, row.State, row.PaymentID = nil, payment.Kept, "d"
	require.Error(t, h.db.Create(&row).Error)
	for _, id := range []string{"e", "f"} {
		row.State, row.PaymentID = payment.Refunding, id
		require.NoError(t, h.db.Create(&row).Error)
	}
}
