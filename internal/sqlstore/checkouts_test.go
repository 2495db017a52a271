package sqlstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestCheckout_OneOpenPageForEachOrder takes an order's page through its states: begun, answered,
// asked about, ended unpaid, and begun again. The open page of another order of the sale stays as
// it is.
func (h fixture) TestCheckout_OneOpenPageForEachOrder(t *testing.T) {
	sale := h.exposed(10, 5)
	sn, others := h.writeOrder(sale, 1), h.writeOrder(sale, 2)
	o, ctx := h.order(sale.GoodsID, sn), t.Context()
	now := today.Add(time.Minute)
	ask := now.Add(time.Minute)
	theirs := must.Get(h.BeginCheckout(ctx, h.order(sale.GoodsID, others), now, minutes(9)))(t)
	theirs.ID, theirs.URL = "cs_theirs", "https://pay.example/cs_theirs"
	require.NoError(t, h.SaveCheckout(ctx, theirs))
	defer func() {
		require.Equal(t, []payment.Checkout{theirs},
			must.Get(h.DueCheckouts(ctx, minutes(9), 10))(t))
		require.Equal(t, theirs.URL, h.order(sale.GoodsID, others).CheckoutURL)
	}()
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
	require.NoError(t, h.SaveCheckout(ctx, c), "a repeated answer")
	require.Error(t, h.SaveCheckout(ctx, other), "the first answer counts")
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
	c.Asked = 1
	require.Equal(t, []payment.Checkout{c}, must.Get(h.DueCheckouts(ctx, ask, 10))(t))

	require.NoError(t, h.EndCheckout(ctx, other), "an unknown page changes nothing")
	require.Len(t, must.Get(h.DueCheckouts(ctx, ask, 10))(t), 1)
	require.Equal(t, c.URL, h.order(sale.GoodsID, sn).CheckoutURL)
	for range 2 {
		require.NoError(t, h.EndCheckout(ctx, c))
		require.Empty(t, must.Get(h.DueCheckouts(ctx, ask, 10))(t))
		require.Empty(t, h.order(sale.GoodsID, sn).CheckoutURL)
	}
	require.Error(t, h.SaveCheckout(ctx, c), "nobody asks about a page that is answered late")
	require.Empty(t, h.order(sale.GoodsID, sn).CheckoutURL)
	require.NoError(t, h.HastenCheckout(ctx, sale.GoodsID, sn, now))
	require.False(t, must.Get(h.ClaimCheckout(ctx, c, ask))(t))
	require.Empty(t, must.Get(h.DueCheckouts(ctx, ask, 10))(t), "a page stays ended")
	begun := now.Add(time.Second)
	second := must.Get(h.BeginCheckout(ctx, o, begun, ask))(t)
	require.Equal(t, payment.Checkout{
		GoodsID: sale.GoodsID, OrderSn: sn, Attempt: 2, BegunAt: begun,
	}, second)
	require.Equal(t, second, must.Get(h.BeginCheckout(ctx, o, now, ask))(t))
	require.Error(t, h.SaveCheckout(ctx, c), "the first attempt's answer comes late")
	former := second
	former.Attempt = 1
	require.False(t, must.Get(h.ClaimCheckout(ctx, former, ask))(t))
	require.NoError(t, h.EndCheckout(ctx, c), "the first page does not end the second one")
	unanswered := c
	unanswered.ID, unanswered.URL = "", ""
	require.NoError(t, h.EndCheckout(ctx, unanswered), "nor does the first attempt")
	require.Len(t, must.Get(h.DueCheckouts(ctx, ask, 10))(t), 1)
	require.NoError(t, h.EndCheckout(ctx, second), "the provider made no page")
	require.Empty(t, must.Get(h.DueCheckouts(ctx, ask, 10))(t))

	must.Get(h.CancelOne(sale.GoodsID, sn, now))(t)
	_, err := h.BeginCheckout(ctx, o, now, ask)
	requireConflict(t, err, "the order has ended")
}

// TestDueCheckouts_ManyDelayNoNewOne checks that pages that are due for long leave half of a list
// to those that became due last. The time to pay of these ends soon. Each page is listed once.
func (h fixture) TestDueCheckouts_ManyDelayNoNewOne(t *testing.T) {
	sale, now, ctx := h.exposed(10, 5), today, t.Context()
	var all []string
	for i := range 7 {
		sn := h.writeOrder(sale, int64(i))
		must.Get(h.BeginCheckout(ctx, h.order(sale.GoodsID, sn), now, minutes(i)))(t)
		all = append(all, sn)
	}
	listed := func(at, limit int) (sns []string) {
		for _, c := range must.Get(h.DueCheckouts(ctx, minutes(at), limit))(t) {
			sns = append(sns, c.OrderSn)
		}
		return sns
	}
	require.ElementsMatch(t, []string{all[0], all[1], all[4], all[5]}, listed(5, 4))
	require.ElementsMatch(t, all, listed(9, 7))
	require.ElementsMatch(t, all, listed(9, 10))
	require.Equal(t, all[:1], listed(9, 1))
}

// TestSaveCheckout_PageOfAnEndedOrderIsDue cancels an order while the provider makes its page. The
// cancellation knows no page that it could end.
func (h fixture) TestSaveCheckout_PageOfAnEndedOrderIsDue(t *testing.T) {
	sale := h.exposed(10, 5)
	sn, now := h.writeOrder(sale, 1), today.Add(time.Minute)
	ask, ctx := now.Add(time.Minute), t.Context()
	c := must.Get(h.BeginCheckout(ctx, h.order(sale.GoodsID, sn), now, ask))(t)
	require.Empty(t, must.Get(h.CancelOne(sale.GoodsID, sn, now))(t).Order.CheckoutURL)
	c.ID, c.URL = "cs_1", "https://pay.example/cs_1"
	require.NoError(t, h.SaveCheckout(ctx, c))
	require.Equal(t, []payment.Checkout{c}, must.Get(h.DueCheckouts(ctx, now, 10))(t))
}

// TestRecordReversal_KeepsTheLatestState reports the states of a dispute in different orders, and
// one of another order.
func (h fixture) TestRecordReversal_KeepsTheLatestState(t *testing.T) {
	sale := h.exposed(10, 5)
	sn, others := h.writeOrder(sale, 1), h.writeOrder(sale, 2)
	var latest payment.Reversal
	report := func(id, sn, state string, second int, closed bool) payment.Reversal {
		r := payment.Reversal{
			ID: id, Kind: payment.ReversalDispute, GoodsID: sale.GoodsID, OrderSn: sn,
			PaymentID: "pi_1", Amount: 1999 + int64(second), Currency: "EUR", State: state,
			Closed: closed, At: today.Add(time.Duration(second) * time.Second),
		}
		require.NoError(t, h.RecordReversal(t.Context(), r, today))
		return r
	}
	of := func(sn string) []payment.Reversal {
		return must.Get(h.ReversalsOf(t.Context(), sale.GoodsID, sn))(t)
	}
	theirs := report("dp_0", others, "under_review", 0, false)
	for _, c := range []struct {
		state  string
		second int
		closed bool
		want   string
	}{
		{"needs_response", 1, false, "needs_response"},
		{"under_review", 2, false, "under_review"},
		{"needs_response", 1, false, "under_review"},
		{"needs_response", 2, false, "needs_response"},
		{"won", 2, true, "won"},
		{"under_review", 3, false, "won"},
		{"lost", 4, true, "won"},
	} {
		if r := report("dp_1", sn, c.state, c.second, c.closed); c.want == c.state {
			latest = r
		}
		require.Equal(t, c.want, latest.State)
		require.Equal(t, []payment.Reversal{latest}, of(sn))
		require.Equal(t, []payment.Reversal{theirs}, of(others))
	}
}

// failedRefund is a provider's report that a refund of a payment has failed.
func failedRefund(p payment.Payment, id string, at time.Time) payment.Reversal {
	return payment.Reversal{
		ID: id, Kind: payment.ReversalRefund, GoodsID: p.GoodsID, OrderSn: p.OrderSn,
		PaymentID: p.ID, Amount: p.Amount, Currency: "EUR", State: "failed", Closed: true,
		Failed: true, At: at,
	}
}

// TestRecordReversal_FailedRefundIsDueAgain reports a failed refund before and after the refunder
// has recorded it, twice, and one of a payment that its order keeps. The pauses grow, and days
// after the first attempt an operator decides.
func (h fixture) TestRecordReversal_FailedRefundIsDueAgain(t *testing.T) {
	sale, now := h.exposed(10, 5), today.Add(time.Minute)
	wrong := h.payment(sale, "pi_wrong", h.writeOrder(sale, 1))
	wrong.Amount++
	kept := h.payment(sale, "pi_kept", h.writeOrder(sale, 2))
	for _, p := range []payment.Payment{wrong, kept} {
		must.Get(h.receiveOne(p, now))(t)
	}
	fails := func(p payment.Payment, refund string) error {
		return h.RecordReversal(t.Context(), failedRefund(p, refund, now), now)
	}
	open := func() []payment.Refund { return must.Get(h.OpenRefunds(t.Context(), "", 10))(t) }
	for n, refund := range []string{"re_1", "re_2"} {
		require.True(t, must.Get(h.ClaimRefund(t.Context(), open()[0], now))(t))
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(fails(wrong, refund)),
			"its answer is not recorded yet")
		require.NoError(t, h.MarkRefunded(t.Context(), wrong, now))
		succeeded := failedRefund(wrong, refund, now)
		succeeded.State, succeeded.Closed, succeeded.Failed = "succeeded", false, false
		require.NoError(t, h.RecordReversal(t.Context(), succeeded, now))
		require.Empty(t, open(), "the buyer has the money")
		require.NoError(t, fails(wrong, refund))
		require.Len(t, open(), 1)
		require.InDelta(t, float64(30*time.Second<<n), float64(open()[0].NextAt.Sub(now)),
			float64(6*time.Second<<n))
		require.Contains(t, open()[0].Problem, refund)
		require.NoError(t, h.MarkRefunded(t.Context(), wrong, now))
		require.NoError(t, fails(wrong, refund), "a repeated report")
		require.Empty(t, open())
		require.NoError(t, fails(wrong, refund+"_"))
	}
	require.NoError(t, h.MarkRefunded(t.Context(), wrong, now))
	now = now.Add(payment.RefundPeriod)
	require.NoError(t, fails(wrong, "re_5"))
	require.True(t, open()[0].Stopped())
	require.EqualValues(t, 1, must.Get(h.CountStoppedRefunds(t.Context()))(t))
	require.NoError(t, fails(kept, "re_3"))
	require.NoError(t, fails(h.payment(sale, "pi_unknown", kept.OrderSn), "re_4"))
	require.Len(t, open(), 1)
}

// TestMarkRefunded_LateAttemptRecordsNothing lets a refunder sleep after the provider has accepted
// a refund. Before it records that, the provider reports the refund as failed: of a payment that is
// still to be refunded, and of one that somebody else has recorded as refunded.
func (h fixture) TestMarkRefunded_LateAttemptRecordsNothing(t *testing.T) {
	ctx, sale, claimed := t.Context(), h.exposed(10, 5), today.Add(time.Minute)
	reported := claimed.Add(12 * time.Second) // the attempt can't be in progress any more
	for buyer, recorded := range []bool{false, true} {
		p := h.payment(sale, fmt.Sprint("pi_", buyer), h.writeOrder(sale, int64(buyer+1)))
		p.Amount++
		must.Get(h.receiveOne(p, claimed))(t)
		only := func() payment.Refund {
			all := must.Get(h.OpenRefunds(ctx, "", 10))(t)
			require.Len(t, all, 1, recorded)
			return all[0]
		}
		require.True(t, must.Get(h.ClaimRefund(ctx, only(), claimed))(t))
		if recorded {
			must.Get(h.CancelReturned(ctx, p, nil, payment.RefundByMerchant, reported))(t)
			require.Empty(t, must.Get(h.OpenRefunds(ctx, "", 10))(t))
		}
		id := fmt.Sprint("re_", buyer)
		require.NoError(t, h.RecordReversal(ctx, failedRefund(p, id, reported), reported))
		require.NoError(t, h.MarkRefunded(ctx, p, claimed))
		require.NoError(t, h.RecordRefundProblem(ctx, p, claimed, "too late"))
		require.Equal(t, reported, only().TriedAt)
		require.Contains(t, only().Problem, id)
		next := only().NextAt
		require.True(t, must.Get(h.ClaimRefund(ctx, only(), next))(t))
		require.NoError(t, h.MarkRefunded(ctx, p, next))
		require.Empty(t, must.Get(h.OpenRefunds(ctx, "", 10))(t))
	}
}

// TestRefund_StopsAndIsRetriedOrSettled takes refunds through their attempts to an operator's
// decision.
func (h fixture) TestRefund_StopsAndIsRetriedOrSettled(t *testing.T) {
	ctx, sale, now := t.Context(), h.exposed(10, 5), today.Add(time.Minute)
	p := h.payment(sale, "pi_wrong", h.writeOrder(sale, 1))
	p.Amount++
	must.Get(h.receiveOne(p, now))(t)
	kept := h.payment(sale, "pi_kept", h.writeOrder(sale, 2))
	must.Get(h.receiveOne(kept, now))(t)
	only := func() payment.Refund {
		all := must.Get(h.OpenRefunds(ctx, "", 10))(t)
		require.Len(t, all, 1)
		return all[0]
	}
	stopped := func() int64 { return must.Get(h.CountStoppedRefunds(ctx))(t) }
	oldest := func() time.Time { return must.Get(h.OldestRefund(ctx))(t) }
	require.Equal(t, now, oldest())
	attempt := func() {
		r := only()
		require.True(t, must.Get(h.ClaimRefund(ctx, r, now))(t))
		require.False(t, must.Get(h.ClaimRefund(ctx, r, now))(t), "another refunder has claimed it")
		require.NoError(t, h.RecordRefundProblem(ctx, p, now, strings.Repeat("é", 300)))
	}
	require.Equal(t, only(), must.Get(h.OpenRefund(ctx, p.ID))(t))
	for _, id := range []string{"pi_other", kept.ID} {
		_, err := h.OpenRefund(ctx, id)
		require.ErrorIs(t, err, payment.ErrNoSuchRefund)
		_, err = h.SettleRefund(ctx, id, "", now)
		require.ErrorIs(t, err, payment.ErrNoSuchRefund)
		_, err = h.RetryRefund(ctx, id, now)
		require.ErrorIs(t, err, payment.ErrNoSuchRefund)
	}
	attempt()
	_, err := h.SettleRefund(ctx, p.ID, "", now)
	requireConflict(t, err, "an attempt may be in progress")
	first := now
	now = now.Add(payment.RefundPeriod - time.Millisecond)
	attempt()
	require.False(t, only().Stopped())
	require.Zero(t, stopped())
	require.Equal(t, first, oldest(), "from the first attempt on")
	now = now.Add(time.Millisecond)
	attempt()
	require.True(t, only().Stopped())
	require.EqualValues(t, 1, stopped())
	require.Equal(t, first, only().Since)
	require.Equal(t, now, only().TriedAt)
	require.Equal(t, strings.Repeat("é", maxRefundProblem), only().Problem)
	now = now.Add(time.Hour)
	require.Empty(t, must.Get(h.DueRefunds(ctx, now, 10))(t))
	require.Empty(t, must.Get(h.DueRefunds(ctx, first, 10))(t), "also after the clock was set back")
	require.False(t, must.Get(h.ClaimRefund(ctx, only(), now))(t), "it has stopped")

	ctx = seckill.WithActor(ctx, seckill.Actor{ID: "9", Role: seckill.Operator})
	require.Equal(t, now, must.Get(h.RetryRefund(ctx, p.ID, now))(t).NextAt)
	require.Len(t, must.Get(h.DueRefunds(ctx, now, 10))(t), 1)
	require.Zero(t, only().Attempts)
	attempt()
	require.False(t, only().Stopped(), "a new period")
	now = now.Add(time.Minute)
	settled := must.Get(h.SettleRefund(ctx, p.ID, "by bank", now))(t)
	require.True(t, settled.Stopped())
	require.Empty(t, settled.Problem)
	require.Empty(t, must.Get(h.OpenRefunds(ctx, "", 10))(t))
	require.NoError(t, h.RecordReversal(ctx, failedRefund(p, "re_late", now), now))
	require.Empty(t, must.Get(h.OpenRefunds(ctx, "", 10))(t), "the buyer has the money already")
	r := must.Get(h.receiveOne(p, now))(t)
	require.Equal(t, payment.Refunded, r.State)
	again := must.Get(h.SettleRefund(ctx, p.ID, "another note", now.Add(time.Second)))(t)
	require.Equal(t, settled, again, "asked again after an answer that was lost")
	_, err = h.RetryRefund(ctx, p.ID, now)
	require.ErrorIs(t, err, payment.ErrNoSuchRefund)
	entries := h.auditOf(sale.GoodsID, 2)
	require.Equal(t, salechange.ActSettleRefund, entries[0].Action)
	require.Equal(t, salechange.ActRetryRefund, entries[1].Action)
	require.Equal(t, map[string]any{
		"orderSn": p.OrderSn, "paymentId": p.ID, "note": "by bank",
	}, entries[0].Became)
	require.Equal(t, "9", entries[0].ActorID)
}

// TestRefunds_OfOneSaleAreIndependent has three refunds of a sale whose attempts begin at the same
// moment. What is recorded of one changes none of the others.
func (h fixture) TestRefunds_OfOneSaleAreIndependent(t *testing.T) {
	ctx, sale, now := t.Context(), h.exposed(10, 5), today.Add(time.Minute)
	paid := make([]payment.Payment, 3)
	for i := range paid {
		paid[i] = h.payment(sale, fmt.Sprint("pi_", i), h.writeOrder(sale, int64(i+1)))
		paid[i].Amount++
		must.Get(h.receiveOne(paid[i], now))(t)
	}
	open := func(after string) []payment.Refund {
		return must.Get(h.OpenRefunds(ctx, after, 10))(t)
	}
	ids := func(after string) []string {
		return mapSlice(open(after), func(r payment.Refund) string { return r.ID })
	}
	require.Equal(t, []string{"pi_1", "pi_2"}, ids("pi_0"))
	all := open("")
	require.True(t, must.Get(h.ClaimRefund(ctx, all[0], now))(t))
	require.Equal(t, all[1:], open("pi_0"), "one attempt")
	for _, r := range all[1:] {
		require.True(t, must.Get(h.ClaimRefund(ctx, r, now))(t))
	}
	all = open("")
	require.NoError(t, h.RecordRefundProblem(ctx, paid[0], now, "the provider is down"))
	require.Equal(t, all[1:], open("pi_0"), "one problem")
	require.NoError(t, h.MarkRefunded(ctx, paid[1], now))
	require.Equal(t, []string{"pi_0", "pi_2"}, ids(""))
	now = now.Add(time.Minute)
	for _, r := range open("") {
		require.True(t, must.Get(h.ClaimRefund(ctx, r, now))(t))
	}
	must.Get(h.RetryRefund(ctx, "pi_0", now))(t)
	require.Equal(t, 2, open("pi_0")[0].Attempts, "one is retried")
	must.Get(h.SettleRefund(ctx, "pi_2", "", now.Add(time.Minute)))(t)
	require.Equal(t, []string{"pi_0"}, ids(""))
}

// TestCancelReturned_CancelsOnce returns payments at the provider: one that its order keeps, twice;
// one of a shipped order; one that the order does not keep; and one that nobody has recorded.
func (h fixture) TestCancelReturned_CancelsOnce(t *testing.T) {
	ctx, sale, now := t.Context(), h.exposed(10, 5), today.Add(time.Minute)
	pay := func(id string, quantity int64) payment.Payment {
		p := h.payment(sale, id, h.writeOrder(sale, quantity))
		require.Equal(t, payment.Kept, must.Get(h.receiveOne(p, now))(t).State)
		return p
	}
	returned, shipped := pay("pi_1", 1), pay("pi_2", 2)
	must.Get(h.Ship(ctx, sale.GoodsID, shipped.OrderSn, order.Shipment{Carrier: "x"}, now))(t)
	second := returned
	second.ID = "pi_3"
	must.Get(h.receiveOne(second, now))(t)
	for _, p := range []payment.Payment{second, shipped} {
		c := must.Get(h.CancelReturned(ctx, p, nil, payment.RefundByMerchant, now))(t)
		require.Nil(t, c.Move)
		require.Equal(t, order.Paid, c.Order.Status)
	}
	unknown := returned
	unknown.ID = "pi_4"
	_, err := h.CancelReturned(ctx, unknown, nil, payment.RefundByMerchant, now)
	require.ErrorIs(t, err, payment.ErrNoSuchPayment)
	require.NotErrorIs(t, err, order.ErrTryAgain,
		"a report that came early is not repeated for this")
	unknown.OrderSn = "0"
	_, err = h.CancelReturned(ctx, unknown, nil, payment.RefundByMerchant, now)
	require.ErrorIs(t, err, order.ErrNoSuchOrder)
	require.NoError(t, h.RecordReversal(ctx, failedRefund(returned, "re_1", now), now))
	failed := must.Get(h.CancelReturned(ctx, returned, []string{"re_0", "re_1"},
		payment.RefundByMerchant, now))(t)
	require.Nil(t, failed.Move, "a refund has failed meanwhile")
	require.Equal(t, order.Paid, failed.Order.Status)
	for n := range 2 {
		c := must.Get(h.CancelReturned(ctx, returned, []string{"re_2"},
			payment.RefundDispute, now))(t)
		require.Equal(t, n == 0, c.Move != nil)
		require.Equal(t, order.Cancelled, c.Order.Status)
	}
	r := must.Get(h.receiveOne(returned, now))(t)
	require.Equal(t, payment.Refunded, r.State)
	require.Equal(t, payment.RefundDispute, r.Reason)
	r = must.Get(h.receiveOne(second, now))(t)
	require.Equal(t, payment.Refunded, r.State, "the refunder has nothing to return")
	require.Equal(t, payment.RefundSecond, r.Reason)
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
