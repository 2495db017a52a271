package app_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/paymentprovider/stripepay"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/fakestripe"
	"flashsale.dev/seckill/internal/testing/must"
)

// stripeFixture is a fixture whose payment provider is Stripe's stand-in.
type stripeFixture struct {
	*fixture
	stripe *fakestripe.Server
}

func openStripe(t *testing.T, paymentTimeout time.Duration) *stripeFixture {
	t.Parallel()
	s := fakestripe.Start(t)
	h := openPaidBy(t, paymentTimeout, must.Get(stripepay.New(stripepay.Options{
		Key: fakestripe.Key, WebhookSecret: fakestripe.WebhookSecret, URL: s.URL,
		PublicURL: "https://sale.example", Currency: "EUR",
	}))(t))
	h.work()
	return &stripeFixture{h, s}
}

// checkout asks to pay an order and returns the page and the session.
func (h *stripeFixture) checkout(who seckill.Actor, sn string) (page, session string) {
	h.t.Helper()
	h.eventually(func() bool {
		r := h.as(who, "POST", "/orders/"+sn+"/pay", "")
		if r.Status != http.StatusOK {
			return false
		}
		page = dataOf[struct{ CheckoutURL string }](h.t, r).CheckoutURL
		return true
	}, "no page was ever opened")
	require.NotEmpty(h.t, page)
	return page, h.stripe.Session(sn)
}

// buysToPay buys one unit of a new sale, and opens the page on which to pay.
func (h *stripeFixture) buysToPay(who seckill.Actor) (sn, page, session string) {
	h.t.Helper()
	sn = h.buys(who, h.exposed("5", "5"), "1")
	page, session = h.checkout(who, sn)
	return sn, page, session
}

// webhook sends an event and returns the outcome, or the reason of the refusal.
func (h *stripeFixture) webhook(body, signature string) string {
	h.t.Helper()
	r := h.as(seckill.Actor{}, "POST", "/payments/webhook", body, "Stripe-Signature", signature)
	if r.Status != http.StatusOK {
		return r.Reason
	}
	return dataOf[struct{ Outcome string }](h.t, r).Outcome
}

// ask makes the poller ask about an order's page now, instead of after its pause.
func (h *stripeFixture) ask(goods, sn string) {
	require.NoError(h.t, h.Store.HastenCheckout(h.t.Context(), h.id(goods), sn, time.Now()))
}

// agrees waits until the money and the order agree: a paid order's money is kept once, another
// order's none, and no page can take more.
func (h *stripeFixture) agrees(who seckill.Actor, sn, status string, amount int64) {
	h.t.Helper()
	h.becomes(who, sn, status)
	h.eventually(func() bool {
		kept, open := h.stripe.Money(sn)
		return kept == amount && open == 0
	}, "the money never agreed with the order")
	require.NotContains(h.t, h.as(who, "GET", "/orders/"+sn, "").Body, "checkoutUrl")
}

const completed = "checkout.session.completed"

// TestStripe_PagePaysTheOrder pays on the page, with the webhook twice and a late one of another
// state after it.
func TestStripe_PagePaysTheOrder(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	goods, who := h.exposed("5", "5"), buyer(7)
	sn := h.buys(who, goods, "2")
	page, session := h.checkout(who, sn)
	again, _ := h.checkout(who, sn)
	require.Equal(t, page, again)
	require.Equal(t, 1, h.stripe.Calls("POST /v1/checkout/sessions"))
	require.Contains(t, h.as(who, "GET", "/orders/"+sn, "").Body, `"checkoutUrl":"`+page+`"`)
	early, earlySign := h.stripe.Webhook("checkout.session.expired", session, nil)
	must.Get(h.stripe.Pay(page))(t)
	body, sign := h.stripe.Webhook(completed, session, nil)
	require.Equal(t, "kept", h.webhook(body, sign))
	require.Equal(t, "kept", h.webhook(body, sign))
	require.Equal(t, "recorded", h.webhook(early, earlySign))
	h.agrees(who, sn, "paid", 2*1999)
	h.exact(goods, 5, 3, 2)
}

// TestStripe_PaymentInTimeNeedsNoWebhook pays late in the time to pay, and sends no webhook. The
// poller asks before that time ends, so the order keeps its payment.
func TestStripe_PaymentInTimeNeedsNoWebhook(t *testing.T) {
	h := openStripe(t, 18*time.Second)
	who := buyer(7)
	sn, page, _ := h.buysToPay(who)
	must.Get(h.stripe.Pay(page))(t)
	h.agrees(who, sn, "paid", 1999)
}

// TestStripe_FreeOrderNeedsNoPage pays an order of nothing, of which Stripe makes no page. Its
// refund asks Stripe for nothing either.
func TestStripe_FreeOrderNeedsNoPage(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	goods, who := h.draft("5", "5"), buyer(7)
	h.does(merchant(), "PATCH", "/admin/sales/"+goods, `{"price":0}`)
	h.does(merchant(), "POST", "/admin/sales/"+goods+"/expose", "")
	sn := h.buys(who, goods, "2")
	for range 2 {
		r := h.does(who, "POST", "/orders/"+sn+"/pay", "")
		require.Contains(t, r.Body, `"status":"paid"`)
	}
	h.agrees(who, sn, "paid", 0)
	h.exact(goods, 5, 3, 2)
	h.does(merchant(), "POST", "/admin/orders/"+sn+"/refund", "")
	h.agrees(who, sn, "cancelled", 0)
	h.exact(goods, 5, 5, 0)
	require.Zero(t, h.stripe.Calls("POST /v1/checkout/sessions"))
	require.Zero(t, h.stripe.Calls("POST /v1/refunds"))
}

// TestStripe_LostAnswersAreFound loses the answer of the session's creation and the webhook.
func TestStripe_LostAnswersAreFound(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	goods, who := h.exposed("5", "5"), buyer(7)
	sn := h.buys(who, goods, "1")
	h.stripe.Lose("/v1/checkout/sessions", 1)
	r := h.refuses("UNAVAILABLE", who, "POST", "/orders/"+sn+"/pay", "")
	require.NotContains(t, r.Body, fakestripe.Key)
	require.Contains(t, r.Body, `"the payment provider did not return a page; please ask again"`)
	page, session := h.checkout(who, sn)
	must.Get(h.stripe.Pay(page))(t)
	h.ask(goods, sn)
	h.agrees(who, sn, "paid", 1999)
	require.Equal(t, "kept", h.webhook(h.stripe.Webhook(completed, session, nil))) // days later
	h.agrees(who, sn, "paid", 1999)
	require.NotContains(t, h.textOf(h.log), fakestripe.Key)
}

// TestStripe_LostPageOfACancelledOrderEnds loses the answer of the creation, and the buyer cancels.
func TestStripe_LostPageOfACancelledOrderEnds(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	goods, who := h.exposed("5", "5"), buyer(7)
	sn := h.buys(who, goods, "1")
	h.stripe.Lose("/v1/checkout/sessions", 1)
	h.refuses("UNAVAILABLE", who, "POST", "/orders/"+sn+"/pay", "")
	require.Equal(t, "open", h.stripe.Status(h.stripe.Session(sn)))
	h.does(who, "POST", "/orders/"+sn+"/cancel", "")
	h.ask(goods, sn)
	h.agrees(who, sn, "cancelled", 0)
}

// TestStripe_CancelEndsThePage cancels an order, whose page then takes no money.
func TestStripe_CancelEndsThePage(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	who := buyer(7)
	sn, page, _ := h.buysToPay(who)
	h.does(who, "POST", "/orders/"+sn+"/cancel", "")
	h.agrees(who, sn, "cancelled", 0)
	_, err := h.stripe.Pay(page)
	require.Error(t, err)
}

// TestStripe_RepeatedCancelEndsThePage cancels an order in a process that dies before it has the
// page ended, or whose database does not answer the commit. The buyer or the process asks again.
func TestStripe_RepeatedCancelEndsThePage(t *testing.T) {
	h, ctx, who := openStripe(t, 15*time.Minute), t.Context(), buyer(7)
	goods := h.exposed("5", "5")
	sn := h.buys(who, goods, "1")
	h.checkout(who, sn)
	next := time.Now().Add(9 * time.Minute)
	page := must.Get(h.Store.DueCheckouts(ctx, next, 1))(t)[0]
	require.True(t, must.Get(h.Store.ClaimCheckout(ctx, page, next))(t))
	must.Get(h.Store.Cancel(ctx, h.id(goods), []string{sn}, time.Now()))(t)
	h.does(who, "POST", "/orders/"+sn+"/cancel", "")
	h.agrees(who, sn, "cancelled", 0)
}

// TestStripe_LatePaymentIsRefunded pays before the order ends, with the webhook after it. One
// answer to the refund gets lost.
func TestStripe_LatePaymentIsRefunded(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	who := buyer(7)
	sn, page, session := h.buysToPay(who)
	must.Get(h.stripe.Pay(page))(t)
	h.does(who, "POST", "/orders/"+sn+"/cancel", "")
	h.stripe.Lose("/v1/refunds", 1)
	body, sign := h.stripe.Webhook(completed, session, nil)
	require.Contains(t, []string{"refunding", "refunded"}, h.webhook(body, sign))
	h.agrees(who, sn, "cancelled", 0)
	h.eventually(func() bool { return h.webhook(body, sign) == "refunded" }, "never recorded")
}

// TestStripe_FailedRefundIsRepeated lets a refund fail at the buyer's bank, days after Stripe had
// accepted it. Its report comes twice.
func TestStripe_FailedRefundIsRepeated(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	who := buyer(7)
	sn, page, session := h.buysToPay(who)
	must.Get(h.stripe.Pay(page))(t)
	body, sign := h.stripe.Webhook(completed, session, nil)
	require.Equal(t, "kept", h.webhook(body, sign))
	h.does(merchant(), "POST", "/admin/orders/"+sn+"/refund", "")
	h.agrees(who, sn, "cancelled", 0)
	for range 2 {
		require.Eventually(t, func() bool { return h.webhook(body, sign) == "refunded" },
			10*time.Second, 50*time.Millisecond)
		failed, failedSign := h.stripe.FailRefund(h.stripe.Intent(session))
		kept, _ := h.stripe.Money(sn)
		require.EqualValues(t, 1999, kept)
		require.Equal(t, "recorded", h.webhook(failed, failedSign))
		require.Equal(t, "recorded", h.webhook(failed, failedSign))
		require.Contains(t, h.onlyRefund().Problem, "failed")
		h.does(operator(), "POST", "/admin/refunds/"+h.stripe.Intent(session)+"/retry", "")
		h.agrees(who, sn, "cancelled", 0)
	}
	require.Equal(t, 3, h.stripe.Calls("POST /v1/refunds"))
}

// waitingRefund is a refund as operators see it.
type waitingRefund struct {
	PaymentID, OrderSn, Currency, Reason, Problem string

	Amount, Attempts int64
	Stopped          bool
}

// onlyRefund returns the one refund that is not made yet.
func (h *stripeFixture) onlyRefund() waitingRefund {
	h.t.Helper()
	r := h.does(operator(), "GET", "/admin/refunds", "")
	items := dataOf[struct{ Items []waitingRefund }](h.t, r).Items
	require.Len(h.t, items, 1, r.Body)
	return items[0]
}

// TestStripe_RefusedRefundIsRetriedOrSettled lets Stripe refuse every refund. Days later the
// refunder stops. An operator's retry succeeds once Stripe makes refunds again; another operator
// returned the money of a second payment by bank.
func TestStripe_RefusedRefundIsRetriedOrSettled(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	who := buyer(7)
	h.stripe.RefuseRefunds("charge_disputed")
	refused := func() (sn, intent string) {
		sn, page, session := h.buysToPay(who)
		must.Get(h.stripe.Pay(page))(t)
		h.does(who, "POST", "/orders/"+sn+"/cancel", "")
		require.Equal(t, "refunding", h.webhook(h.stripe.Webhook(completed, session, nil)))
		intent = h.stripe.Intent(session)
		h.eventually(func() bool { return h.onlyRefund().Problem != "" }, "never tried")
		// Days pass, and the next attempt is due.
		_, err := h.Store.Pool().ExecContext(t.Context(), `UPDATE payments SET refund_since = 1,
			refund_tried_at = 1, refund_at = 1, refund_problem = '' WHERE payment_id = ?`, intent)
		require.NoError(t, err)
		h.eventually(func() bool {
			last := h.onlyRefund()
			return last.Stopped && last.Problem != ""
		}, "never stopped")
		return sn, intent
	}
	sn, intent := refused()
	r := h.onlyRefund()
	require.Contains(t, r.Problem, "charge_disputed")
	require.Equal(t, waitingRefund{
		PaymentID: intent, OrderSn: sn, Currency: "CNY", Reason: "CANCELLED", Problem: r.Problem,
		Amount: 1999, Attempts: r.Attempts, Stopped: true,
	}, r)
	h.stripe.RefuseRefunds("")
	h.refuses("FORBIDDEN", merchant(), "POST", "/admin/refunds/"+intent+"/retry", "")
	h.does(operator(), "POST", "/admin/refunds/"+intent+"/retry", "")
	h.agrees(who, sn, "cancelled", 0)

	h.stripe.RefuseRefunds("charge_disputed")
	_, intent = refused()
	settle := "/admin/refunds/" + intent + "/settle"
	_, err := h.Store.Pool().ExecContext(t.Context(),
		"UPDATE payments SET refund_tried_at = 1 WHERE payment_id = ?", intent)
	require.NoError(t, err)
	h.refuses("BAD_REQUEST", operator(), "POST", settle, `{"note":"`+strings.Repeat("n", 201)+`"}`)
	h.does(operator(), "POST", settle, `{"note":"bank transfer"}`)
	h.does(operator(), "POST", settle, "") // asked again
	h.refuses("NOT_FOUND", operator(), "POST", "/admin/refunds/"+intent+"/retry", "")
	require.Contains(t, h.does(operator(), "GET", "/admin/refunds", "").Body, `"items":[]`)
	log := h.does(operator(), "GET", "/admin/audit", "").Body
	require.Contains(t, log, `"action":"retryRefund"`)
	require.Regexp(t, `"action":"settleRefund".*"note":"bank transfer"`, log)
	require.Equal(t, 1, strings.Count(log, `"action":"settleRefund"`))
}

// TestStripe_RefundAtStripeCancelsTheOrder returns a payment on Stripe's pages: a part of it, then
// the rest. The reports of both come twice, and before that of the payment.
func TestStripe_RefundAtStripeCancelsTheOrder(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	goods, who := h.exposed("5", "5"), buyer(7)
	sn, other := h.buys(who, goods, "1"), h.buys(who, goods, "1")
	page, session := h.checkout(who, sn)
	must.Get(h.stripe.Pay(page))(t)
	body, sign := h.stripe.Refund(h.stripe.Intent(session), 500)
	rest, restSign := h.stripe.Refund(h.stripe.Intent(session), 1499)
	for range 2 {
		require.Equal(t, "recorded", h.webhook(rest, restSign))
		require.Equal(t, "recorded", h.webhook(body, sign))
	}
	h.agrees(who, sn, "cancelled", 0)
	require.Equal(t, "refunded", h.webhook(h.stripe.Webhook(completed, session, nil)))
	h.exact(goods, 5, 4, 1)
	require.Zero(t, h.stripe.Calls("POST /v1/refunds"), "the money is returned already")
	require.Equal(t, 2, strings.Count(
		h.does(merchant(), "GET", "/admin/orders?orderSn="+sn, "").Body, `"kind":"refund"`))
	require.Contains(t, h.does(merchant(), "GET", "/admin/sales/"+goods+"/audit", "").Body,
		`"action":"refundOrder"`)

	// A part leaves the order paid, and so does all money of an order that is shipped.
	page, session = h.checkout(who, other)
	must.Get(h.stripe.Pay(page))(t)
	require.Equal(t, "kept", h.webhook(h.stripe.Webhook(completed, session, nil)))
	require.Equal(t, "recorded", h.webhook(h.stripe.Refund(h.stripe.Intent(session), 1)))
	h.becomes(who, other, "paid")
	h.does(merchant(), "POST", "/admin/orders/"+other+"/ship", `{"carrier":"UPS"}`)
	require.Equal(t, "recorded", h.webhook(h.stripe.Refund(h.stripe.Intent(session), 1998)))
	h.becomes(who, other, "paid")
	h.exact(goods, 5, 4, 1)
}

// TestStripe_ConcurrentRefundsReturnTheMoneyOnce returns a payment on Stripe's pages and by the API
// at once.
func TestStripe_ConcurrentRefundsReturnTheMoneyOnce(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	goods := h.exposed("20", "1")
	for i := range int64(8) {
		who := buyer(100 + i)
		sn := h.buys(who, goods, "1")
		page, session := h.checkout(who, sn)
		must.Get(h.stripe.Pay(page))(t)
		paid, paidSign := h.stripe.Webhook(completed, session, nil)
		require.Equal(t, "kept", h.webhook(paid, paidSign))
		body, sign := h.stripe.Refund(h.stripe.Intent(session), 1999)
		var both sync.WaitGroup
		both.Go(func() { h.as(merchant(), "POST", "/admin/orders/"+sn+"/refund", "") })
		both.Go(func() {
			h.as(seckill.Actor{}, "POST", "/payments/webhook", body, "Stripe-Signature", sign)
		})
		both.Go(func() {
			h.as(seckill.Actor{}, "POST", "/payments/webhook", paid, "Stripe-Signature", paidSign)
		})
		both.Wait()
		h.agrees(who, sn, "cancelled", 0)
		h.eventually(func() bool { return h.webhook(paid, paidSign) == "refunded" }, "not recorded")
	}
	h.exact(goods, 20, 20, 0)
	require.Zero(t, h.stripe.Calls("POST /v1/refunds"))
}

// TestStripe_ShortTimeToPayEndsThePage expires an order long before Stripe would end its page.
func TestStripe_ShortTimeToPayEndsThePage(t *testing.T) {
	h := openStripe(t, 10*time.Second)
	goods, paid, unpaid := h.exposed("5", "5"), buyer(7), buyer(8)
	late, never := h.buys(paid, goods, "1"), h.buys(unpaid, goods, "1")
	page, session := h.checkout(paid, late)
	h.checkout(unpaid, never)
	must.Get(h.stripe.Pay(page))(t)
	h.becomes(paid, late, "expired")
	body, sign := h.stripe.Webhook(completed, session, nil)
	require.Contains(t, []string{"refunding", "refunded"}, h.webhook(body, sign))
	h.agrees(paid, late, "expired", 0)
	h.agrees(unpaid, never, "expired", 0)
}

// TestStripe_PageIsInTheSalesCurrency pays orders of sales in other currencies than the
// installation's: one without decimals, and one whose unit differs at Stripe. Money in the
// installation's currency goes back.
func TestStripe_PageIsInTheSalesCurrency(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	for code, charged := range map[string]int64{"JPY": 1999, "ISK": 199900, "EUR": 1999} {
		goods, who := h.draft("5", "5"), buyer(7)
		h.does(merchant(), "PATCH", "/admin/sales/"+goods, `{"currency":"`+code+`"}`)
		h.does(merchant(), "POST", "/admin/sales/"+goods+"/expose", "")
		sn := h.buys(who, goods, "1")
		page, session := h.checkout(who, sn)
		require.Equal(t, strings.ToLower(code), h.stripe.Currency(session))
		if code != "EUR" {
			other := h.stripe.PayOther(session, fakestripe.Object{"currency": "eur"})
			body, sign := h.stripe.Webhook(completed, other, nil)
			require.Contains(t, []string{"refunding", "refunded"}, h.webhook(body, sign), code)
		}
		must.Get(h.stripe.Pay(page))(t)
		require.Equal(t, "kept", h.webhook(h.stripe.Webhook(completed, session, nil)), code)
		h.agrees(who, sn, "paid", charged)
	}
}

// TestStripe_UnpayableOrderIsAConflict buys at a price below Stripe's minimum, and in thousandths
// that are no multiple of ten. It buys in a currency that Stripe takes with fewer decimals, and in
// one that it does not take.
func TestStripe_UnpayableOrderIsAConflict(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	for _, change := range []string{
		`{"price":49,"currency":"USD"}`, `{"currency":"LYD"}`, `{"currency":"KPW"}`,
		`{"currency":"KWD"}`,
	} {
		goods, who := h.draft("5", "5"), buyer(7)
		h.does(merchant(), "PATCH", "/admin/sales/"+goods, change)
		h.does(merchant(), "POST", "/admin/sales/"+goods+"/expose", "")
		sn := h.buys(who, goods, "1")
		for range 2 {
			r := h.refuses("CONFLICT", who, "POST", "/orders/"+sn+"/pay", "")
			require.Contains(t, r.Body, "amount or currency")
		}
		h.does(who, "POST", "/orders/"+sn+"/cancel", "")
		h.agrees(who, sn, "cancelled", 0)
		h.exact(goods, 5, 5, 0)
	}
}

// TestStripe_WrongMoneyIsRefunded pays other amounts and currencies for an order.
func TestStripe_WrongMoneyIsRefunded(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	who := buyer(7)
	sn, page, session := h.buysToPay(who)
	for _, changes := range []fakestripe.Object{
		{"amount_total": int64(1998)}, {"amount_total": int64(2000)}, {"currency": "usd"},
	} {
		other := h.stripe.PayOther(session, changes)
		body, sign := h.stripe.Webhook(completed, other, nil)
		require.Contains(t, []string{"refunding", "refunded"}, h.webhook(body, sign))
	}
	must.Get(h.stripe.Pay(page))(t)
	require.Equal(t, "kept", h.webhook(h.stripe.Webhook(completed, session, nil)))
	h.agrees(who, sn, "paid", 1999)
}

// TestStripe_ForgedWebhooksChangeNothing sends events that Stripe did not sign, or that concern
// another service.
func TestStripe_ForgedWebhooksChangeNothing(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	goods, who := h.exposed("5", "5"), buyer(7)
	sn := h.buys(who, goods, "1")
	_, session := h.checkout(who, sn)
	paid := fakestripe.Object{"payment_status": "paid", "payment_intent": "pi_forged"}
	body, sign := h.stripe.Webhook(completed, session, paid)
	old := time.Now().Add(-6 * time.Minute)
	for name, signature := range map[string]string{
		"another secret": fakestripe.Sign(body, "whsec_another", time.Now()),
		"another body":   fakestripe.Sign(body+" ", fakestripe.WebhookSecret, time.Now()),
		"too old":        fakestripe.Sign(body, fakestripe.WebhookSecret, old),
		"no digits":      "t=1,v1=zz", "nothing": "",
		"another time": strings.Replace(sign, "t=", "t=1", 1),
	} {
		require.Equal(t, "UNAUTHENTICATED", h.webhook(body, signature), name)
	}
	for signature, want := range map[string]string{"": "UNAUTHENTICATED", sign: "BAD_REQUEST"} {
		h.refuses(want, seckill.Actor{}, "POST", "/payments/webhook?a=b", body,
			"Stripe-Signature", signature)
	}
	for want, changes := range map[string]fakestripe.Object{
		"ignored":   {"metadata": fakestripe.Object{}, "payment_status": "paid"},
		"NOT_FOUND": {"metadata": fakestripe.Object{"goodsId": goods, "orderSn": "no-order"}},
	} {
		changes["payment_status"], changes["payment_intent"] = "paid", "pi_other"
		foreign, sign := h.stripe.Webhook(completed, session, changes)
		require.Equal(t, want, h.webhook(foreign, sign))
	}
	require.Contains(t, h.as(who, "GET", "/orders/"+sn, "").Body, `"status":"created"`)
}

// TestStripe_RecordsRefundsAndDisputes reports a refund and a dispute before their payment.
func TestStripe_RecordsRefundsAndDisputes(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	who := buyer(7)
	sn, page, session := h.buysToPay(who)
	must.Get(h.stripe.Pay(page))(t)
	for kind, object := range map[string]fakestripe.Object{
		"refund.created":         {"id": "re_1", "status": "succeeded"},
		"charge.dispute.created": {"id": "dp_1", "status": "needs_response"},
		"charge.dispute.closed":  {"id": "dp_1", "status": "lost"},
	} {
		object["payment_intent"], object["amount"] = h.stripe.Intent(session), 500
		object["currency"] = "eur"
		body, sign := h.stripe.Event(kind, object)
		for range 2 {
			require.Equal(t, "recorded", h.webhook(body, sign), kind)
		}
	}
	require.Equal(t, "kept", h.webhook(h.stripe.Webhook(completed, session, nil)))
	h.agrees(who, sn, "paid", 1999)
	shown := h.does(merchant(), "GET", "/admin/orders?orderSn="+sn, "").Body
	require.Contains(t, shown, `{"id":"dp_1","kind":"dispute","paymentId":"`+
		h.stripe.Intent(session)+`","amount":500,"currency":"EUR","state":"`)
	require.NotContains(t, h.does(who, "GET", "/orders/"+sn, "").Body, "reversals")
	require.Equal(t, "ignored", h.webhook(h.stripe.Event("customer.created", fakestripe.Object{})))
}

// TestStripe_DisputeWithAllEvidenceIsRecorded reports a dispute with as much evidence as Stripe
// accepts.
func TestStripe_DisputeWithAllEvidenceIsRecorded(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	who := buyer(7)
	sn, page, session := h.buysToPay(who)
	must.Get(h.stripe.Pay(page))(t)
	event := func(characters int) (body, sign string) {
		return h.stripe.Event("charge.dispute.updated", fakestripe.Object{
			"id": "dp_1", "payment_intent": h.stripe.Intent(session), "amount": 500,
			"currency": "eur", "status": "under_review",
			"evidence": fakestripe.Object{"uncategorized_text": strings.Repeat("e", characters)},
		})
	}
	require.Equal(t, "recorded", h.webhook(event(150_000)))
	require.Contains(t, h.does(merchant(), "GET", "/admin/orders?orderSn="+sn, "").Body, `"dp_1"`)
	require.Equal(t, "BAD_REQUEST", h.webhook(event(256<<10)))
}

// TestStripe_LostDisputeCancelsTheOrder disputes payments. Both reports come twice, in the wrong
// order, and before that of the payment. A lost dispute of the whole payment cancels the order,
// whose units are on sale again.
func TestStripe_LostDisputeCancelsTheOrder(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	goods, who := h.exposed("5", "5"), buyer(7)
	pays := func() (sn, session string) {
		sn = h.buys(who, goods, "1")
		page, session := h.checkout(who, sn)
		must.Get(h.stripe.Pay(page))(t)
		return sn, session
	}
	keeps := func(session string) {
		require.Equal(t, "kept", h.webhook(h.stripe.Webhook(completed, session, nil)))
	}
	closes := func(session string, amount int64, status string) {
		opened, openedSign := h.stripe.Dispute(h.stripe.Intent(session), amount)
		closed, closedSign := h.stripe.CloseDispute(h.stripe.Intent(session), status)
		for range 2 {
			require.Equal(t, "recorded", h.webhook(closed, closedSign))
			require.Equal(t, "recorded", h.webhook(opened, openedSign))
		}
	}
	lost, session := pays()
	closes(session, 1999, "lost")
	h.agrees(who, lost, "cancelled", 0)
	require.Equal(t, "refunded", h.webhook(h.stripe.Webhook(completed, session, nil)))
	h.exact(goods, 5, 5, 0)
	shown := h.does(merchant(), "GET", "/admin/orders?orderSn="+lost, "").Body
	require.Contains(t, shown, `"amount":1999,"currency":"EUR","state":"lost"`)
	require.Contains(t, h.does(merchant(), "GET", "/admin/sales/"+goods+"/audit", "").Body,
		`"actorId":"","actorRole":"","action":"refundOrder"`)

	h.eventually(func() bool {
		return strings.Contains(h.does(merchant(), "GET", "/admin/events", "").Body,
			`"type":"order.cancelled"`)
	}, "no program hears of it")

	// A part, and a dispute that the merchant won, leave the order paid.
	for status, kept := range map[string]int64{"lost": 1499, "won": 1999} {
		sn, session := pays()
		keeps(session)
		closes(session, 500, status)
		h.agrees(who, sn, "paid", kept)
	}
	// The goods of a shipped order do not come back with the money.
	shipped, session := pays()
	keeps(session)
	h.does(merchant(), "POST", "/admin/orders/"+shipped+"/ship", `{"carrier":"UPS"}`)
	closes(session, 1999, "lost")
	h.becomes(who, shipped, "paid")
	h.exact(goods, 5, 2, 3)
	require.Contains(t, h.does(merchant(), "GET", "/admin/orders?orderSn="+shipped, "").Body,
		`"state":"lost"`)
	require.Zero(t, h.stripe.Calls("POST /v1/refunds"), "the money is returned already")
}

// TestStripe_LostDisputeEndsTheRefund refunds a payment that is disputed, which Stripe refuses. The
// lost dispute returns the money, so that no operator has to.
func TestStripe_LostDisputeEndsTheRefund(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	who := buyer(7)
	sn, page, session := h.buysToPay(who)
	must.Get(h.stripe.Pay(page))(t)
	body, sign := h.stripe.Webhook(completed, session, nil)
	require.Equal(t, "kept", h.webhook(body, sign))
	require.Equal(t, "recorded", h.webhook(h.stripe.Dispute(h.stripe.Intent(session), 1999)))
	h.does(merchant(), "POST", "/admin/orders/"+sn+"/refund", "")
	h.becomes(who, sn, "cancelled")
	h.eventually(func() bool {
		return strings.Contains(h.onlyRefund().Problem, "charge_disputed")
	}, "never tried")
	require.Equal(t, "recorded", h.webhook(h.stripe.CloseDispute(h.stripe.Intent(session), "lost")))
	h.agrees(who, sn, "cancelled", 0)
	require.Contains(t, h.does(operator(), "GET", "/admin/refunds", "").Body, `"items":[]`)
	require.Equal(t, "refunded", h.webhook(body, sign))
}

// TestStripe_MoneyAgreesWithEveryOrder takes orders through every pair of a buyer's act and a fate
// of the webhook. The money and the order agree in each.
func TestStripe_MoneyAgreesWithEveryOrder(t *testing.T) {
	h := openStripe(t, 15*time.Minute)
	goods := h.exposed("50", "1")
	who := int64(100)
	for _, act := range []string{"pay", "pay, then cancel", "cancel", "cancel, then pay"} {
		for _, fate := range []string{"once", "twice", "lost", "late"} {
			who++
			by := buyer(who)
			sn := h.buys(by, goods, "1")
			page, session := h.checkout(by, sn)
			steps := strings.Split(act, ", then ")
			taken := false
			for _, step := range steps {
				if step == "pay" {
					_, err := h.stripe.Pay(page)
					taken = err == nil
				} else {
					h.does(by, "POST", "/orders/"+sn+"/cancel", "")
				}
				if taken && step == "pay" && fate != "lost" && fate != "late" {
					body, sign := h.stripe.Webhook(completed, session, nil)
					require.Contains(t, []string{"kept", "refunding"}, h.webhook(body, sign))
					if fate == "twice" {
						h.webhook(body, sign)
					}
					break
				}
			}
			status, amount := "cancelled", int64(0)
			if act == "pay" || act == "pay, then cancel" && (fate == "once" || fate == "twice") {
				status, amount = "paid", 1999
			}
			if fate == "late" {
				require.Contains(t, []string{"kept", "refunding", "refunded", "recorded"},
					h.webhook(h.stripe.Webhook(completed, session, nil)))
			}
			h.ask(goods, sn)
			h.agrees(by, sn, status, amount)
			t.Logf("%s, webhook %s: %s", act, fate, status)
		}
	}
}
