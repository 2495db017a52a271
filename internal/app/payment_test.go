package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// bank is the built-in provider with counters for charges and refunds. A test can make it
// unavailable.
type bank struct {
	paymentprovider.Test
	mu      sync.Mutex
	away    bool
	refunds map[string]int
	charges int
	meddle  func(o order.Order) // runs during Charge
	decline error               // what Charge answers; nil: it charges
}

func (b *bank) Charge(ctx context.Context, o order.Order) (payment.Payment, error) {
	b.mu.Lock()
	b.charges++
	meddle, decline := b.meddle, b.decline
	b.mu.Unlock()
	if decline != nil {
		return payment.Payment{}, decline
	}
	if meddle != nil {
		meddle(o)
	}
	return b.Test.Charge(ctx, o)
}

func (b *bank) Refund(ctx context.Context, p payment.Payment) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return errors.New("the bank is away")
	}
	if b.refunds == nil {
		b.refunds = map[string]int{}
	}
	b.refunds[p.ID]++
	return b.Test.Refund(ctx, p)
}

func (b *bank) set(change func(b *bank)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

func (b *bank) refundsOf(id string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refunds[id]
}

// paid is the response to a callback.
type paid struct{ PaymentID, State, Reason, OrderStatus string }

// callback sends a signed payment callback as the provider does.
func (h *fixture) callback(id, sn string, amount int) (reply, paid) {
	body := fmt.Sprintf(`{"paymentId":%q,"orderSn":%q,"amount":%d}`, id, sn, amount)
	signer := must.Get(paymentprovider.NewSigner(secret, time.Now))(h.t)
	timestamp, signature := signer.Sign([]byte(body))
	r := h.as(seckill.Actor{}, "POST", "/payments/callback", body, paymentprovider.TimestampHeader,
		timestamp, paymentprovider.SignatureHeader, signature)
	return r, dataOf[paid](h.t, r)
}

func TestPaymentCallback_PaysOnce(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "2")
	sn := h.buys(buyer(1), goods, "2")
	_, wrong := h.callback("p-0", sn, 1)
	require.Equal(t,
		paid{PaymentID: "p-0", State: "refunding", Reason: "AMOUNT", OrderStatus: "created"}, wrong)
	r, _ := h.callback("p-1", strings.ToUpper(sn), 2*1999)
	require.Equal(t, "NOT_FOUND", r.Reason)
	for range 3 {
		_, p := h.callback("p-1", sn, 2*1999)
		require.Equal(t, paid{PaymentID: "p-1", State: "kept", OrderStatus: "paid"}, p)
	}
	other := h.buys(buyer(2), goods, "2")
	r, _ = h.callback("p-1", other, 2*1999)
	require.Equal(t, "CONFLICT", r.Reason, "the id belongs to another payment")
	h.becomes(buyer(2), other, "created")
	h.does(buyer(1), "POST", "/orders/"+sn+"/pay", "") // the order is already paid
	require.Zero(t, h.bank.charges, "Pay must not charge a paid order")

	_, p := h.callback("p-2", sn, 2*1999)
	require.Equal(t, "PAID", p.Reason, "the second payment must be refunded")
	h.eventually(func() bool { return h.bank.refundsOf("p-2") == 1 },
		"the second payment was not refunded")
	h.eventually(func() bool { return h.bank.refundsOf("p-0") == 1 },
		"the payment of a wrong amount was not refunded")
	h.exact(goods, 5, 1, 4)
	require.Zero(t, h.bank.refundsOf("p-1"))
	h.does(merchant(), "POST", "/admin/orders/"+sn+"/refund", "")
	_, p = h.callback("p-1", sn, 2*1999)
	require.Equal(t, "MERCHANT", p.Reason, "the merchant has returned the money")
}

// notifyingBank is a provider without pages that reports payments by webhooks.
type notifyingBank struct{ *bank }

func (notifyingBank) Event(
	_ context.Context, _ http.Header, body []byte,
) (payment.Event, error) {
	paid := &payment.Payment{ID: "p-1", Amount: 1999}
	return payment.Event{Payment: paid}, json.Unmarshal(body, paid)
}

// TestPaymentWebhook_PaysOnceWithoutPages uses a provider that reports payments and has no pages.
func TestPaymentWebhook_PaysOnceWithoutPages(t *testing.T) {
	t.Parallel()
	h := openPaidBy(t, 15*time.Minute, notifyingBank{&bank{}})
	h.work()
	goods := h.exposed("5", "1")
	sn := h.buys(buyer(1), goods, "1")
	for range 2 {
		r := h.as(seckill.Actor{}, "POST", "/payments/webhook", `{"orderSn":"`+sn+`"}`)
		require.Equal(t, "kept", dataOf[struct{ Outcome string }](t, r).Outcome)
	}
	h.becomes(buyer(1), sn, "paid")
	h.exact(goods, 5, 4, 1)
}

func TestPaymentCallback_LatePaymentIsKeptForARefund(t *testing.T) {
	h := openWith(t, time.Second)
	h.bank.set(func(b *bank) { b.away = true })
	goods := h.exposed("5", "1")
	// A busy machine may never see the order as created.
	sn := dataOf[struct{ OrderSn string }](t, h.tries(buyer(1), goods, "1")).OrderSn
	h.becomes(buyer(1), sn, "expired")
	h.refuses("CONFLICT", buyer(1), "POST", "/orders/"+sn+"/pay", "")
	require.Zero(t, h.bank.charges, "Pay must not charge an expired order")
	for range 2 {
		_, p := h.callback("p-late", sn, 1999)
		require.Equal(t, paid{
			PaymentID: "p-late", State: "refunding", Reason: "EXPIRED", OrderStatus: "expired",
		}, p)
	}
	h.eventually(func() bool {
		return strings.Contains(h.textOf(h.log), "cannot refund a payment, retrying")
	}, "no refund was tried")
	_, p := h.callback("p-late", sn, 1999) // the refunder's own test covers the retry
	require.Equal(t, "refunding", p.State)
	h.exact(goods, 5, 5, 0)
}

// TestPayment_DeclinedChargeIsConflict checks that a provider can say that it charged nothing. An
// error of any other kind leaves the outcome unknown.
func TestPayment_DeclinedChargeIsConflict(t *testing.T) {
	h := open(t)
	sn := h.buys(buyer(1), h.exposed("5", "1"), "1")
	for reason, decline := range map[string]error{
		"CONFLICT":    apierror.New(apierror.Conflict, "the card is declined"),
		"UNAVAILABLE": errors.New("the bank is away"),
	} {
		h.bank.set(func(b *bank) { b.decline = decline })
		h.refuses(reason, buyer(1), "POST", "/orders/"+sn+"/pay", "")
	}
	h.bank.set(func(b *bank) { b.decline = nil })
	h.does(buyer(1), "POST", "/orders/"+sn+"/pay", "")
}

// TestPayment_CancelMeanwhileIsRefunded cancels an order during its charge. The payment fails, and
// the provider refunds it exactly one time.
func TestPayment_CancelMeanwhileIsRefunded(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "1")
	sn := h.buys(buyer(1), goods, "1")
	h.bank.set(func(b *bank) {
		b.meddle = func(order.Order) { h.does(buyer(1), "POST", "/orders/"+sn+"/cancel", "") }
	})
	h.refuses("CONFLICT", buyer(1), "POST", "/orders/"+sn+"/pay", "")
	h.eventually(func() bool { return h.bank.refundsOf(sn) == 1 }, "the payment was not refunded")
	var p paid
	h.eventually(func() bool {
		_, p = h.callback(sn, sn, 1999)
		return p.State == "refunded"
	}, "the payment was not marked as refunded")
	require.Equal(t,
		paid{PaymentID: sn, State: "refunded", Reason: "CANCELLED", OrderStatus: "cancelled"}, p)
	require.Equal(t, 1, h.bank.refundsOf(sn))
	h.exact(goods, 5, 5, 0)
}
