package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
)

// paymentResponse is what has become of a payment and of its order.
type paymentResponse struct {
	PaymentID   string             `json:"paymentId"`
	OrderSn     string             `json:"orderSn"`
	Amount      int64              `json:"amount"`
	State       order.PaymentState `json:"state"`
	Reason      order.RefundReason `json:"reason,omitzero"`
	OrderStatus order.Status       `json:"orderStatus"`
}

// takePayment is POST /payments/callback: the provider says that it was paid for an order.
func (a *api) receivePayment(ctx context.Context, r *request) (response, error) {
	id, sn, amount := r.Text("paymentId"), r.Text("orderSn"), r.Int("amount")
	if id == "" || len(id) > order.MaxPaymentID || strings.ContainsFunc(id, isInvalidIDRune) {
		r.Reject("paymentId", "must be 1 to %d of [0-9A-Za-z._-]", order.MaxPaymentID)
	}
	if amount < 0 {
		r.Reject("amount", "must be 0 or more")
	}
	if err := r.Err(); err != nil {
		return response{}, err
	}
	if !isOrderSn(sn) {
		return response{}, seckill.NewError(seckill.NotFound, "there is no such order")
	}
	got, err := a.Payments.Receive(ctx, id, sn, amount)
	return ok(paymentResponse{
		PaymentID: got.ID, OrderSn: got.OrderSn, Amount: got.Amount, State: got.State, Reason: got.Reason, OrderStatus: got.Order.Status,
	}), err
}

// readSigned reads a request whose body is signed: nothing of it counts before the signature has been verified, and what
// is not signed, the query, counts never.
func (a *api) readSigned(c *gin.Context, rt route) (*request, error) {
	if a.Callbacks == nil {
		return nil, seckill.NewError(seckill.Forbidden, "callbacks of payments are refused: SECKILL_PAYMENT_SECRET is not set")
	}
	timestamp, signature := c.Request.Header[paymentprovider.TimestampHeader], c.Request.Header[paymentprovider.SignatureHeader]
	if len(timestamp) != 1 || len(signature) != 1 {
		return nil, a.signatureError(c, seckill.NewError(seckill.Unauthenticated, "one %s and one %s header are needed", paymentprovider.TimestampHeader, paymentprovider.SignatureHeader))
	}
	body, err := params.ReadBody(c.Writer, c.Request)
	if err != nil {
		return nil, err
	}
	if err := a.Callbacks.Verify(timestamp[0], signature[0], body); err != nil {
		return nil, a.signatureError(c, err)
	}
	if c.Request.URL.RawQuery != "" {
		return nil, seckill.NewFieldError("query", "is not signed; put the fields into the body")
	}
	r := &request{Fields: params.New(rt.fields), header: c.Request.Header}
	return r, r.ReadEncoded(r.header, body)
}

// unsigned names the scheme that a 401 must name (RFC 9110, 11.6.1).
func (a *api) signatureError(c *gin.Context, err error) error {
	c.Header("WWW-Authenticate", "HMAC-SHA256")
	return err
}

func (a *api) paymentRoutes() []route {
	return []route{{
		methods: []string{http.MethodPost}, path: "/payments/callback", public: true, signed: true,
		fields: []string{"paymentId", "orderSn", "amount"}, handle: a.receivePayment,
	}}
}
