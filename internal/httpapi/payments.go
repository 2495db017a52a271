package httpapi

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/paymentprovider"
)

// paymentResponse is the state of a payment and of its order. Money for an order that cannot be
// paid any more is accepted and refunded, so the provider always gets a final state.
type paymentResponse struct {
	PaymentID   string               `json:"paymentId"`
	OrderSn     string               `json:"orderSn"`
	Amount      int64                `json:"amount"`
	State       payment.State        `json:"state"`
	Reason      payment.RefundReason `json:"reason,omitzero"`
	OrderStatus order.Status         `json:"orderStatus"`
}

// receivePayment is POST /payments/callback: the payment provider reports a payment. The provider
// may repeat a report, so the service records each payment once.
func (a *api) receivePayment(ctx context.Context, r *request) (response, error) {
	id, sn, amount := r.Text("paymentId"), r.Text("orderSn"), r.Int("amount")
	if !isPaymentID(id) {
		r.Reject("paymentId", "must be 1 to %d of [0-9A-Za-z._-]", payment.MaxPaymentID)
	}
	if amount < 0 {
		r.Reject("amount", "must be 0 or more")
	}
	if err := r.Err(); err != nil {
		return response{}, err
	}
	if !isOrderSn(sn) {
		return response{}, query.NewNoSuchOrder()
	}
	err := r.permit(ctx, func() error {
		return errorOnly(a.Orders.FindChangeableByNumber(ctx, sn))
	})
	if err != nil {
		return response{}, err
	}
	got, err := a.Payments.Receive(ctx, payment.Payment{ID: id, OrderSn: sn, Amount: amount})
	return ok(paymentResponse{
		PaymentID: got.ID, OrderSn: got.OrderSn, Amount: got.Amount,
		State: got.State, Reason: got.Reason, OrderStatus: got.Order.Status,
	}), err
}

// readSigned reads a request with a signed body. It verifies the signature before it decodes. It
// refuses query fields, because the signature does not cover them.
func (a *api) readSigned(c *gin.Context, rt route) (*request, error) {
	if a.Callbacks == nil {
		return nil, apierror.New(apierror.Forbidden,
			"callbacks of payments are refused: SECKILL_PAYMENT_SECRET is not set")
	}
	r := &request{Fields: params.New(rt.fields, rt.lists), gin: c, header: c.Request.Header}
	timestamps := r.header[paymentprovider.TimestampHeader]
	signatures := r.header[paymentprovider.SignatureHeader]
	if len(timestamps) != 1 || len(signatures) != 1 {
		return nil, signatureError(c, apierror.New(apierror.Unauthenticated,
			"one %s and one %s header are needed",
			paymentprovider.TimestampHeader, paymentprovider.SignatureHeader))
	}
	body, err := params.ReadBody(c.Writer, c.Request, params.MaxBody)
	if err != nil {
		return nil, err
	}
	if err := a.Callbacks.Verify(timestamps[0], signatures[0], body); err != nil {
		return nil, signatureError(c, err)
	}
	if c.Request.URL.RawQuery != "" {
		return nil, apierror.NewBadField("query", "is not signed; put the fields into the body")
	}
	return r, r.ReadEncoded(r.header, body)
}

// signatureError adds the authentication scheme, which a 401 must name (RFC 9110, 11.6.1).
func signatureError(c *gin.Context, err error) error {
	c.Header("WWW-Authenticate", "HMAC-SHA256")
	return err
}

// Webhooks verifies and reads the messages of a payment provider.
type Webhooks interface {
	// Event returns what a signed message reports. It returns an UNAUTHENTICATED error if the
	// provider did not sign the body, or signed it too long ago.
	Event(ctx context.Context, header http.Header, body []byte) (payment.Event, error)
}

// The outcomes of a webhook besides the states of its payment.
const (
	webhookRecorded = "recorded" // it changed a page, a refund or a dispute
	webhookIgnored  = "ignored"  // it concerns no order of this shop
)

// webhookResponse is what became of a webhook.
type webhookResponse struct {
	Outcome string `json:"outcome"`
}

// receiveWebhook is POST /payments/webhook: the payment provider's own message.
func (a *api) receiveWebhook(ctx context.Context, r *request) (response, error) {
	e, err := a.Webhooks.Event(ctx, r.header, r.body)
	if err != nil {
		if apierror.ReasonOf(err) == apierror.Unauthenticated {
			err = signatureError(r.gin, err)
		}
		return response{}, err
	}
	if r.gin.Request.URL.RawQuery != "" {
		return response{}, apierror.NewBadField("query", "is not signed; it must be empty")
	}
	if err := r.permit(ctx, nil); err != nil {
		return response{}, err
	}
	got, err := a.Payments.Handle(ctx, e)
	outcome := webhookRecorded
	switch {
	case e.Payment != nil:
		outcome = string(got.State)
	case e.Checkout == nil && e.Reversal == nil:
		outcome = webhookIgnored
	}
	return ok(webhookResponse{Outcome: outcome}), err
}

// maxWebhook is the largest body of a webhook, in bytes. Stripe's event of a dispute has the
// merchant's evidence, which has up to 150,000 characters.
const maxWebhook = 256 << 10

// readWebhook reads the body of a webhook. Its encoding is the provider's, so it has no fields.
func (a *api) readWebhook(c *gin.Context) (*request, error) {
	if a.Webhooks == nil {
		return nil, apierror.New(apierror.Forbidden,
			"webhooks are refused: SECKILL_PAYMENT_PROVIDER names no provider that sends them")
	}
	body, err := params.ReadBody(c.Writer, c.Request, maxWebhook)
	return &request{
		Fields: params.New(nil, nil), gin: c, header: c.Request.Header, body: body,
	}, err
}
