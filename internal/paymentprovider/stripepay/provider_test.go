package stripepay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "github.com/stripe/stripe-go/v85"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/fakestripe"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func providerAt(t *testing.T, url string) *Provider {
	t.Helper()
	return must.Get(New(Options{
		Key: fakestripe.Key, WebhookSecret: fakestripe.WebhookSecret, URL: url,
		PublicURL: "https://sale.example/", Currency: "EUR",
	}))(t)
}

// example returns an order and its first checkout.
func example(amount int64) (order.Order, payment.Checkout) {
	now := time.Now()
	o := order.Order{
		OrderLine: reservation.OrderLine{OrderSn: "o1", Quantity: 1}, GoodsID: 42,
		Amount: amount, Status: order.Created, PayBy: now.Add(15 * time.Minute),
	}
	return o, payment.Checkout{GoodsID: 42, OrderSn: "o1", Attempt: 1, BegunAt: now}
}

// TestProvider_CallsMatchStripesSpecification makes each call to Stripe's own stand-in, which
// refuses what the specification of the API does not allow.
func TestProvider_CallsMatchStripesSpecification(t *testing.T) {
	mock := servers.StripeMock(t)
	stripe := must.Get(New(Options{
		Key: "sk_test_123", URL: mock.URL(), PublicURL: "https://sale.example", Currency: "EUR",
	}))(t)
	o, c := example(1999)
	c = must.Get(stripe.Open(t.Context(), o, c))(t)
	require.Regexp(t, "^cs_", c.ID)
	must.Get(stripe.client.V1CheckoutSessions.Retrieve(t.Context(), c.ID, nil))(t)
	require.NoError(t, stripe.End(t.Context(), c))
	require.NoError(t, stripe.Refund(t.Context(), payment.Payment{
		ID: "pi_123", GoodsID: 42, OrderSn: "o1", Amount: 1999,
	}))
	_, err := stripe.client.V1CheckoutSessions.Create(t.Context(),
		&sdk.CheckoutSessionCreateParams{Mode: sdk.String("gift")})
	require.Error(t, err, "stripe-mock checks requests")
}

// TestOpen_RepeatedCallReturnsTheSameSession repeats a call, and begins another attempt.
func TestOpen_RepeatedCallReturnsTheSameSession(t *testing.T) {
	s := fakestripe.Start(t)
	stripe := providerAt(t, s.URL)
	o, c := example(1999)
	first := must.Get(stripe.Open(t.Context(), o, c))(t)
	require.Equal(t, first, must.Get(stripe.Open(t.Context(), o, c))(t))
	require.Equal(t, payment.PageOpen, must.Get(stripe.Ask(t.Context(), first))(t).State)
	require.NoError(t, stripe.End(t.Context(), first))
	require.Equal(t, payment.PageEnded, must.Get(stripe.Ask(t.Context(), first))(t).State)
	require.Error(t, stripe.End(t.Context(), first), "the session is not open")
	c.Attempt = 2
	second := must.Get(stripe.Open(t.Context(), o, c))(t)
	require.NotEqual(t, first.ID, second.ID)
	must.Get(s.Pay(second.URL))(t)
	answer := must.Get(stripe.Ask(t.Context(), second))(t)
	require.Equal(t, payment.PagePaid, answer.State)
	require.Equal(t, payment.Payment{
		ID: s.Intent(second.ID), GoodsID: 42, OrderSn: "o1", Amount: 1999,
	}, answer.Payment)
	for range 2 {
		require.NoError(t, stripe.Refund(t.Context(), answer.Payment))
	}
	kept, _ := s.Money("o1")
	require.Zero(t, kept)
}

// TestOpen_RefusalsAreDefinite checks which errors end an attempt: an expiry that passed meanwhile
// and a key with other parameters, but no server that is away.
func TestOpen_RefusalsAreDefinite(t *testing.T) {
	s := fakestripe.Start(t)
	stripe := providerAt(t, s.URL)
	o, c := example(1999)
	old := c
	old.BegunAt = c.BegunAt.Add(-time.Hour)
	_, err := stripe.Open(t.Context(), o, old)
	require.ErrorIs(t, err, payment.ErrRefused)
	must.Get(stripe.Open(t.Context(), o, c))(t)
	o.Amount++
	_, err = stripe.Open(t.Context(), o, c)
	require.ErrorIs(t, err, payment.ErrRefused)
	s.Close()
	_, err = stripe.Open(t.Context(), o, c)
	require.Error(t, err)
	require.NotErrorIs(t, err, payment.ErrRefused)
	require.NotContains(t, err.Error(), fakestripe.Key)
}

// TestOpen_WrongKeyNamesTheSetting checks that an operator learns what to correct, and that the
// attempt is not over: the corrected key opens its page.
func TestOpen_WrongKeyNamesTheSetting(t *testing.T) {
	stripe := must.Get(New(Options{
		Key: "sk_test_...", URL: fakestripe.Start(t).URL, PublicURL: "https://sale.example/",
		Currency: "EUR",
	}))(t)
	o, c := example(1999)
	_, err := stripe.Open(t.Context(), o, c)
	require.ErrorContains(t, err, "answer 401 of Stripe")
	require.ErrorContains(t, err, "SECKILL_STRIPE_SECRET_KEY")
	require.NotErrorIs(t, err, payment.ErrRefused)
}

// TestAsk_UnknownSession checks that a session of another account or mode, which Stripe does not
// know, differs from a Stripe that does not answer.
func TestAsk_UnknownSession(t *testing.T) {
	s := fakestripe.Start(t)
	stripe := providerAt(t, s.URL)
	_, c := example(1999)
	c.ID = "cs_test_of_another_key"
	_, err := stripe.Ask(t.Context(), c)
	require.ErrorIs(t, err, payment.ErrNoSuchPage)
	s.Close()
	_, err = stripe.Ask(t.Context(), c)
	require.Error(t, err)
	require.NotErrorIs(t, err, payment.ErrNoSuchPage)
}

// TestOpen_BuyerReturnsToTheOrder checks where Stripe's page sends the buyer, paid or not.
func TestOpen_BuyerReturnsToTheOrder(t *testing.T) {
	stripe := providerAt(t, fakestripe.Start(t).URL)
	o, c := example(1999)
	c = must.Get(stripe.Open(t.Context(), o, c))(t)
	session := must.Get(stripe.client.V1CheckoutSessions.Retrieve(t.Context(), c.ID, nil))(t)
	require.Equal(t, "https://sale.example/o/o1", session.SuccessURL)
	require.Equal(t, "https://sale.example/o/o1", session.CancelURL)
}

// TestOpen_ErrorOfStripeEndsTheAttempt checks that the next attempt opens a page. Stripe would
// answer the same error to the same key for a day.
func TestOpen_ErrorOfStripeEndsTheAttempt(t *testing.T) {
	s := fakestripe.Start(t)
	stripe := providerAt(t, s.URL)
	o, c := example(1999)
	s.Break("POST /v1/checkout/sessions", 1)
	_, err := stripe.Open(t.Context(), o, c)
	require.ErrorIs(t, err, payment.ErrRefused)
	_, err = stripe.Open(t.Context(), o, c)
	require.ErrorContains(t, err, "answer 500", "Stripe repeats its answer")
	c.Attempt = 2
	must.Get(stripe.Open(t.Context(), o, c))(t)
}

// TestRefund_RepeatsAfterFailures lets Stripe refuse a refund and fail. Then several callers
// return the money at once.
func TestRefund_RepeatsAfterFailures(t *testing.T) {
	s := fakestripe.Start(t)
	stripe := providerAt(t, s.URL)
	o, c := example(1999)
	opened := must.Get(stripe.Open(t.Context(), o, c))(t)
	must.Get(s.Pay(opened.URL))(t)
	paid := payment.Payment{ID: s.Intent(opened.ID), GoodsID: 42, OrderSn: "o1", Amount: 1999}
	s.RefuseRefunds("balance_insufficient")
	require.ErrorContains(t, stripe.Refund(t.Context(), paid), "balance_insufficient")
	s.RefuseRefunds("")
	s.Break("POST /v1/refunds", 1)
	require.ErrorContains(t, stripe.Refund(t.Context(), paid), "answer 500")
	kept, _ := s.Money("o1")
	require.EqualValues(t, 1999, kept)
	var g errgroup.Group
	for range 8 {
		g.Go(func() error { return stripe.Refund(t.Context(), paid) })
	}
	require.NoError(t, g.Wait())
	kept, _ = s.Money("o1")
	require.Zero(t, kept)
}

// TestExpiry_IsWithinStripesLimits checks that Stripe accepts the end of each session, and that it
// is payBy where Stripe allows that.
func TestExpiry_IsWithinStripesLimits(t *testing.T) {
	o, c := example(1)
	for timeout, want := range map[time.Duration]time.Duration{
		time.Second: minLifetime, 15 * time.Minute: minLifetime, time.Hour: time.Hour,
		8760 * time.Hour: maxLifetime,
	} {
		o.PayBy = c.BegunAt.Add(timeout)
		require.Equal(t, want, expiry(o, c).Sub(c.BegunAt), timeout)
	}
}

// TestUnit_CountsAsStripeDoes converts amounts of the pages' smallest unit.
func TestUnit_CountsAsStripeDoes(t *testing.T) {
	for code, scale := range map[string]int64{
		"EUR": 1, "USD": 1, "CNY": 1, "JPY": 1, "KRW": 1, "BHD": 1, "KWD": 1,
		"ISK": 100, "UGX": 100, "SLE": 1,
	} {
		u := must.Get(unitOf(code))(t)
		require.Equal(t, scale, u.scale, code)
		amount, foreign := u.from(1999*scale, u.code)
		require.Equal(t, int64(1999), amount)
		require.Empty(t, foreign)
	}
	u := must.Get(unitOf("ISK"))(t)
	amount, foreign := u.from(199950, "isk")
	require.Equal(t, int64(199950), amount)
	require.Equal(t, "ISK", foreign, "half a krona is no amount of an order")
	_, foreign = u.from(100, "usd")
	require.Equal(t, "USD", foreign)
	_, err := unitOf("nothing")
	require.ErrorContains(t, err, `"nothing"`)
}
