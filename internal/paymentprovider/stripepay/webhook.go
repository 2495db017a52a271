package stripepay

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order/payment"
)

// signatureHeader is the header field of Stripe's signature.
const signatureHeader = "Stripe-Signature"

// tolerance is the largest age of a webhook. Stripe signs every repetition anew.
const tolerance = 5 * time.Minute

// Event verifies and reads a webhook. The version of Stripe's API that the endpoint has does not
// matter: the few fields that are read have the same meaning in all of them.
func (p *Provider) Event(
	ctx context.Context, header http.Header, body []byte,
) (payment.Event, error) {
	if p.secret == "" || len(header[signatureHeader]) != 1 {
		return payment.Event{}, apierror.New(apierror.Unauthenticated,
			"one %s header is needed", signatureHeader)
	}
	event, err := webhook.ConstructEventWithOptions(body, header.Get(signatureHeader), p.secret,
		webhook.ConstructEventOptions{Tolerance: tolerance, IgnoreAPIVersionMismatch: true})
	if err != nil || event.Data == nil {
		return payment.Event{}, apierror.New(apierror.Unauthenticated,
			"%s does not match the body and SECKILL_STRIPE_WEBHOOK_SECRET, or is older than %s",
			signatureHeader, tolerance)
	}
	switch event.Type {
	case stripe.EventTypeCheckoutSessionCompleted,
		stripe.EventTypeCheckoutSessionAsyncPaymentSucceeded,
		stripe.EventTypeCheckoutSessionAsyncPaymentFailed,
		stripe.EventTypeCheckoutSessionExpired:
		return read(event, p.sessionEvent)
	case stripe.EventTypeRefundCreated, stripe.EventTypeRefundUpdated, stripe.EventTypeRefundFailed:
		return read(event, func(r stripe.Refund) (payment.Event, error) {
			return p.reversal(ctx, r.PaymentIntent, payment.Reversal{
				ID: r.ID, Kind: payment.ReversalRefund, Amount: r.Amount,
				Currency: string(r.Currency), State: string(r.Status),
				// A refund that succeeded may still fail at the buyer's bank.
				Closed: isFailed(&r), Failed: isFailed(&r),
				At: time.Unix(event.Created, 0),
			})
		})
	case stripe.EventTypeChargeDisputeCreated, stripe.EventTypeChargeDisputeUpdated,
		stripe.EventTypeChargeDisputeClosed:
		return read(event, func(d stripe.Dispute) (payment.Event, error) {
			return p.reversal(ctx, d.PaymentIntent, payment.Reversal{
				ID: d.ID, Kind: payment.ReversalDispute, Amount: d.Amount,
				Currency: string(d.Currency), State: string(d.Status),
				Closed: event.Type == stripe.EventTypeChargeDisputeClosed,
				At:     time.Unix(event.Created, 0),
			})
		})
	}
	return payment.Event{}, nil
}

// read decodes the object of an event.
func read[T any](
	event stripe.Event, convert func(T) (payment.Event, error),
) (payment.Event, error) {
	var object T
	if err := json.Unmarshal(event.Data.Raw, &object); err != nil {
		return payment.Event{}, apierror.NewBadField("body", "is not an event of Stripe")
	}
	return convert(object)
}

// sessionEvent returns a change of a page. Only a paid one is believed as it is, because a payment
// never becomes undone. Others may be old: the poller asks what became of the page.
func (p *Provider) sessionEvent(s stripe.CheckoutSession) (payment.Event, error) {
	goodsID, orderSn, ours := orderOf(s.Metadata)
	if !ours {
		return payment.Event{}, nil
	}
	c := payment.Checkout{GoodsID: goodsID, OrderSn: orderSn, ID: s.ID}
	e := payment.Event{Checkout: &c}
	if s.PaymentStatus == stripe.CheckoutSessionPaymentStatusPaid && s.PaymentIntent != nil {
		e.Payment = new(p.paymentOf(&s, c))
	}
	return e, nil
}

// reversal completes a refund or a dispute by its order, which only the payment names. It reads the
// payment at Stripe, because the webhook of the payment may arrive later.
func (p *Provider) reversal(
	ctx context.Context, intent *stripe.PaymentIntent, r payment.Reversal,
) (payment.Event, error) {
	if intent == nil {
		return payment.Event{}, nil
	}
	paid, returns, err := p.returned(ctx, intent.ID)
	if err != nil {
		return payment.Event{}, apierror.NewUnavailable("the payment can't be read at Stripe", err)
	}
	var ours bool
	if r.GoodsID, r.OrderSn, ours = orderOf(paid.Metadata); !ours {
		return payment.Event{}, nil
	}
	r.PaymentID, r.Currency = paid.ID, strings.ToUpper(r.Currency)
	e := payment.Event{Reversal: &r}
	if returns.whole() {
		returned := p.payment(paid.ID, paid.Metadata, paid.Amount, paid.Currency)
		returned.GoodsID, returned.OrderSn = r.GoodsID, r.OrderSn
		e.Returned, e.Refunds = &returned, returns.ids
	}
	return e, nil
}

// orderOf returns the order that metadata names. Other programs of the same account set none.
func orderOf(metadata map[string]string) (goodsID int64, orderSn string, ours bool) {
	goodsID, err := strconv.ParseInt(metadata[goodsIDKey], 10, 64)
	orderSn = metadata[orderSnKey]
	return goodsID, orderSn, err == nil && goodsID > 0 && orderSn != ""
}
