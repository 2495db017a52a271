package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// bank is the built-in provider, watched: it counts what it gave back, and can be away.
type bank struct {
	paymentprovider.Test
	mu      sync.Mutex
	away    bool
	refunds map[string]int
	charges int
	meddle  func(o order.Order) // while the money is being taken
}

func (b *bank) Charge(ctx context.Context, o order.Order) (payment.Payment, error) {
	b.mu.Lock()
	b.charges++
	meddle := b.meddle
	b.mu.Unlock()
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

func (b *bank) gave(id string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refunds[id]
}

// paid is what a callback was answered.
type paid struct{ PaymentID, State, Reason, OrderStatus string }

// callback sends what the provider would send.
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
	r, _ := h.callback("p-1", sn, 1)
	require.Equal(t, "CONFLICT", r.Reason, "not the order's amount")
	r, _ = h.callback("p-1", strings.ToUpper(sn), 2*1999)
	require.Equal(t, "NOT_FOUND", r.Reason)
	for range 3 {
		_, p := h.callback("p-1", sn, 2*1999)
		require.Equal(t, paid{PaymentID: "p-1", State: "kept", OrderStatus: "paid"}, p)
	}
	other := h.buys(buyer(2), goods, "2")
	r, _ = h.callback("p-1", other, 2*1999)
	require.Equal(t, "CONFLICT", r.Reason, "the number of another payment")
	h.becomes(buyer(2), other, "created")
	h.does(buyer(1), "POST", "/orders/"+sn+"/pay", "") // asked again, the same state
	require.Zero(t, h.bank.charges, "and no money is taken of a paid order")

	_, p := h.callback("p-2", sn, 2*1999)
	require.Equal(t, "PAID", p.Reason, "paid twice: the second goes back")
	h.eventually(func() bool {
		return h.bank.gave("p-2") == 1
	}, "the second payment never went back")
	h.exact(goods, 5, 1, 4)
	require.Zero(t, h.bank.gave("p-1"))
}

func TestPaymentCallback_LatePaymentIsKeptForARefund(t *testing.T) {
	h := openWith(t, time.Second)
	h.bank.set(func(b *bank) { b.away = true })
	goods := h.exposed("5", "1")
	sn := h.buys(buyer(1), goods, "1")
	h.becomes(buyer(1), sn, "expired")
	h.refuses("CONFLICT", buyer(1), "POST", "/orders/"+sn+"/pay", "")
	require.Zero(t, h.bank.charges, "no money is taken for what can't be paid")
	for range 2 {
		_, p := h.callback("p-late", sn, 1999)
		require.Equal(t, paid{
			PaymentID: "p-late", State: "refunding", Reason: "EXPIRED", OrderStatus: "expired",
		}, p)
	}
	h.eventually(func() bool {
		return strings.Contains(h.log.String(), "payment not refunded, will retry")
	}, "no refund was tried")
	_, p := h.callback("p-late", sn, 1999) // that the next try comes is the refunder's own test
	require.Equal(t, "refunding", p.State)
	h.exact(goods, 5, 5, 0)
}

func TestPayment_CancelMeanwhileIsRefunded(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "1")
	sn := h.buys(buyer(1), goods, "1")
	h.bank.set(func(b *bank) {
		b.meddle = func(order.Order) {
			h.does(buyer(1), "POST", "/orders/"+sn+"/cancel", "")
		}
	})
	h.refuses("CONFLICT", buyer(1), "POST", "/orders/"+sn+"/pay", "")
	h.eventually(func() bool { return h.bank.gave(sn) == 1 }, "the money never went back")
	_, p := h.callback(sn, sn, 1999)
	h.eventually(func() bool {
		_, p = h.callback(sn, sn, 1999)
		return p.State == "refunded"
	}, "never marked")
	require.Equal(t,
		paid{PaymentID: sn, State: "refunded", Reason: "CANCELLED", OrderStatus: "cancelled"}, p)
	require.Equal(t, 1, h.bank.gave(sn))
	h.exact(goods, 5, 5, 0)
}

// Pay, cancel and a callback at the same moment, over HTTP: the books are exact in Redis and MySQL,
// and every payment that was not kept was given back, once.
func TestPayment_RacesWithCancelAndCallback(t *testing.T) {
	const many = 60
	h := open(t)
	goods := h.exposed(fmt.Sprint(many), "1")
	sold, back := 0, []string{}
	for i := range int64(many) {
		sn := h.buys(buyer(i+1), goods, "1")
		var paidIt, cancelled reply
		var answered paid
		var g errgroup.Group
		g.Go(func() error {
			paidIt = h.as(buyer(i+1), "POST", "/orders/"+sn+"/pay", "")
			return nil
		})
		g.Go(func() error {
			cancelled = h.as(buyer(i+1), "POST", "/orders/"+sn+"/cancel", "")
			return nil
		})
		g.Go(func() error { _, answered = h.callback("c-"+fmt.Sprint(i), sn, 1999); return nil })
		require.NoError(t, g.Wait())
		isPaid := paidIt.Status == http.StatusOK
		require.NotEqual(t, isPaid, cancelled.Status == http.StatusOK, "%s\n%s\n%+v", paidIt.raw,
			cancelled.raw, answered)
		if isPaid {
			sold++
		}
		if answered.State != "kept" {
			back = append(back, answered.PaymentID)
		} else {
			require.True(t, isPaid)
		}
	}
	for _, id := range back {
		h.eventually(func() bool { return h.bank.gave(id) == 1 }, "given back once")
	}
	h.exact(goods, many, int64(many-sold), int64(sold))
	t.Logf("of %d: %d paid, %d cancelled", many, sold, many-sold)
}
