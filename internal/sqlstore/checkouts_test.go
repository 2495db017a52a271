package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestCheckout_OneOpenPageForEachOrder takes an order's page through its states: begun, answered,
// asked about, ended unpaid, and begun again.
func (h fixture) TestCheckout_OneOpenPageForEachOrder(t *testing.T) {
	sale := h.exposed(10, 5)
	sn := h.writeOrder(sale, 1)
	o, ctx := h.order(sale.GoodsID, sn), t.Context()
	now := today.Add(time.Minute)
	ask := now.Add(time.Minute)
	c := must.Get(h.BeginCheckout(ctx, o, now, ask))(t)
	require.Equal(t, payment.Checkout{
		GoodsID: sale.GoodsID, OrderSn: sn, Attempt: 1, BegunAt: now,
	}, c)
	again := must.Get(h.BeginCheckout(ctx, o, now.Add(time.Second), ask))(t)
	require.Equal(t, c, again, "an open page stays the order's only one")

	c.ID, c.URL = "cs_1", "https://pay.example/cs_1"
	require.NoError(t, h.SaveCheckout(ctx, c))
	other := c
	other.ID, other.URL = "cs_2", "https://pay.example/cs_2"
	require.NoError(t, h.SaveCheckout(ctx, other), "the first answer counts")
	require.Equal(t, c, must.Get(h.BeginCheckout(ctx, o, now, ask))(t))
	require.Equal(t, c.URL, h.order(sale.GoodsID, sn).CheckoutURL)
	require.Equal(t, c.URL,
		must.Get(h.OrdersByNumber(ctx, sale.GoodsID, []string{sn}))(t)[0].CheckoutURL)

	require.Empty(t, must.Get(h.DueCheckouts(ctx, ask.Add(-time.Millisecond), 10))(t))
	require.Equal(t, []payment.Checkout{c}, must.Get(h.DueCheckouts(ctx, ask, 10))(t))
	require.NoError(t, h.HastenCheckout(ctx, sale.GoodsID, sn, now))
	require.Equal(t, []payment.Checkout{c}, must.Get(h.DueCheckouts(ctx, now, 10))(t))
	require.True(t, must.Get(h.ClaimCheckout(ctx, c, ask))(t))
	require.False(t, must.Get(h.ClaimCheckout(ctx, c, ask))(t), "another poller has claimed it")
	require.Empty(t, must.Get(h.DueCheckouts(ctx, now, 10))(t))

	require.NoError(t, h.EndCheckout(ctx, other), "an unknown page changes nothing")
	require.Len(t, must.Get(h.DueCheckouts(ctx, ask, 10))(t), 1)
	for range 2 {
		require.NoError(t, h.EndCheckout(ctx, c))
		require.Empty(t, must.Get(h.DueCheckouts(ctx, ask, 10))(t))
		require.Empty(t, h.order(sale.GoodsID, sn).CheckoutURL)
	}
	require.NoError(t, h.SaveCheckout(ctx, c), "an answer that arrives late changes nothing")
	require.Empty(t, h.order(sale.GoodsID, sn).CheckoutURL)
	second := must.Get(h.BeginCheckout(ctx, o, now, ask))(t)
	require.Equal(t, 2, second.Attempt)
	require.Empty(t, second.ID)
	require.NoError(t, h.EndCheckout(ctx, c), "the first page does not end the second one")
	require.Len(t, must.Get(h.DueCheckouts(ctx, ask, 10))(t), 1)

	must.Get(h.CancelOne(sale.GoodsID, sn, now))(t)
	_, err := h.BeginCheckout(ctx, o, now, ask)
	require.Equal(t, seckill.Conflict, seckill.ReasonOf(err), "the order has ended")
}

// TestRecordReversal_KeepsTheLatestState reports the states of a dispute in different orders.
func (h fixture) TestRecordReversal_KeepsTheLatestState(t *testing.T) {
	sale := h.exposed(10, 5)
	sn := h.writeOrder(sale, 1)
	report := func(state string, second int, closed bool) {
		require.NoError(t, h.RecordReversal(t.Context(), payment.Reversal{
			ID: "dp_1", Kind: payment.ReversalDispute, GoodsID: sale.GoodsID, OrderSn: sn,
			PaymentID: "pi_1", Amount: 1999, Currency: "EUR", State: state, Closed: closed,
			At: today.Add(time.Duration(second) * time.Second),
		}))
	}
	state := func() string {
		var rows []reversalRow
		require.NoError(t, h.db.Where("goods_id = ?", sale.GoodsID).Find(&rows).Error)
		require.Len(t, rows, 1)
		return rows[0].State
	}
	for _, c := range []struct {
		state  string
		second int
		closed bool
		want   string
	}{
		{"under_review", 2, false, "under_review"},
		{"needs_response", 1, false, "under_review"},
		{"under_review", 2, false, "under_review"},
		{"won", 2, true, "won"},
		{"under_review", 3, false, "won"},
		{"lost", 4, true, "won"},
	} {
		report(c.state, c.second, c.closed)
		require.Equal(t, c.want, state())
	}
}

// TestRecordReversal_FailedRefundIsDueAgain reports a failed refund before and after the refunder
// has recorded it, twice, and one of a payment that its order keeps.
func (h fixture) TestRecordReversal_FailedRefundIsDueAgain(t *testing.T) {
	sale, now := h.exposed(10, 5), today.Add(time.Minute)
	wrong := h.payment(sale, "pi_wrong", h.writeOrder(sale, 1))
	wrong.Amount++
	kept := h.payment(sale, "pi_kept", h.writeOrder(sale, 2))
	for _, p := range []payment.Payment{wrong, kept} {
		must.Get(h.receiveOne(p, now))(t)
	}
	fails := func(p payment.Payment, refund string) error {
		return h.RecordReversal(t.Context(), payment.Reversal{
			ID: refund, Kind: payment.ReversalRefund, GoodsID: p.GoodsID, OrderSn: p.OrderSn,
			PaymentID: p.ID, Amount: p.Amount, Currency: "EUR", State: "failed", Closed: true,
			Failed: true, At: now,
		})
	}
	due := func() int { return len(must.Get(h.DueRefunds(t.Context(), now, 10))(t)) }
	require.Equal(t, seckill.Unavailable, seckill.ReasonOf(fails(wrong, "re_1")),
		"its answer is not recorded yet")
	for _, refund := range []string{"re_1", "re_2"} {
		require.NoError(t, h.MarkRefunded(t.Context(), wrong, now))
		require.Zero(t, due())
		require.NoError(t, fails(wrong, refund))
		require.Equal(t, 1, due())
		require.NoError(t, h.MarkRefunded(t.Context(), wrong, now))
		require.NoError(t, fails(wrong, refund), "a repeated report")
		require.Zero(t, due())
	}
	require.NoError(t, fails(kept, "re_3"))
	require.NoError(t, fails(h.payment(sale, "pi_unknown", kept.OrderSn), "re_4"))
	require.Zero(t, due())
}

// TestReceive_RefundsAnotherCurrency checks that an order keeps no payment of another currency.
func (h fixture) TestReceive_RefundsAnotherCurrency(t *testing.T) {
	sale := h.exposed(10, 5)
	p := h.payment(sale, "pi_foreign", h.writeOrder(sale, 1))
	p.Currency = "USD"
	for range 2 {
		r := must.Get(h.receiveOne(p, today.Add(time.Minute)))(t)
		require.Equal(t, payment.RefundCurrency, r.Reason)
		require.Equal(t, payment.Refunding, r.State)
		require.Equal(t, p, r.Payment)
	}
}
