package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
)

const callback = "/payments/callback"

// pays sends a callback that the provider signed; header fields in pairs come on top.
func (h *fixture) pays(target, body string, header ...string) reply {
	h.t.Helper()
	timestamp, signature := h.signer.Sign([]byte(body))
	return h.ask(nil, "POST", target, body, append([]string{paymentprovider.TimestampHeader, timestamp, paymentprovider.SignatureHeader, signature}, header...)...)
}

func TestPaymentCallback_RecordsAPayment(t *testing.T) {
	h := newFixture(t)
	h.order("order-1", longID, buyer())
	good := `{"paymentId":"p-1","orderSn":"order-1","amount":399800}`
	for range 2 {
		r := h.pays(callback, good)
		require.Equal(t, http.StatusOK, r.Status, r.raw)
		require.JSONEq(t, `{"paymentId":"p-1","orderSn":"order-1","amount":399800,"state":"kept","orderStatus":"paid"}`, string(r.Data))
	}
	h.order("order-2", longID, buyer())
	require.Equal(t, 200, h.as(buyer(), "POST", "/orders/order-2/cancel", "").Status)
	r := h.pays(callback, strings.ReplaceAll(good, "-1", "-2"))
	require.JSONEq(t, `{"paymentId":"p-2","orderSn":"order-2","amount":399800,"state":"refunding","reason":"CANCELLED","orderStatus":"cancelled"}`, string(r.Data))

	for body, want := range map[string]string{
		``:   "BAD_REQUEST",
		`{}`: "BAD_REQUEST",
		`[]`: "BAD_REQUEST",
		`{"paymentId":"p-1","orderSn":"order-1","amount":"1"}`:                       "BAD_REQUEST",
		`{"paymentId":"p-1","orderSn":"order-1","amount":-1}`:                        "BAD_REQUEST",
		`{"paymentId":"p-1","orderSn":"order-1","amount":1.5}`:                       "BAD_REQUEST",
		`{"paymentId":"","orderSn":"order-1","amount":1}`:                            "BAD_REQUEST",
		`{"paymentId":"p 1","orderSn":"order-1","amount":1}`:                         "BAD_REQUEST",
		`{"paymentId":"` + strings.Repeat("p", 65) + `","orderSn":"o","amount":1}`:   "BAD_REQUEST",
		`{"paymentId":"p-1","orderSn":"order-1","amount":1,"status":"paid"}`:         "BAD_REQUEST",
		`{"paymentId":"p-1","orderSn":"order-1","amount":1,"paymentId":"p-2"}`:       "BAD_REQUEST",
		`{"paymentId":"p-1","orderSn":"order-9","amount":1}`:                         "NOT_FOUND",
		`{"paymentId":"p-1","orderSn":"` + strings.Repeat("o", 65) + `","amount":1}`: "NOT_FOUND",
		`{"paymentId":"p-1","orderSn":"order-1","amount":1}`:                         "CONFLICT",
	} {
		require.Equal(t, want, h.pays(callback, body).Reason, body)
	}
	require.Equal(t, "BAD_REQUEST", h.pays(callback+"?amount=399800", good).Reason, "what is not signed does not count")
	require.Equal(t, "BAD_REQUEST", h.pays(callback, good, "Content-Type", "text/plain").Reason)
}

func TestPaymentCallback_RefusesBadSignatures(t *testing.T) {
	h := newFixture(t)
	h.order("order-1", longID, buyer())
	body := `{"paymentId":"p-1","orderSn":"order-1","amount":399800}`
	timestamp, signature := h.signer.Sign([]byte(body))
	past, err := paymentprovider.NewSigner(secret, func() time.Time { return h.now.Add(-paymentprovider.Tolerance - time.Second) })
	require.NoError(t, err)
	oldTime, oldSignature := past.Sign([]byte(body))
	before := h.changes()
	for name, header := range map[string][]string{
		"nothing":       nil,
		"no signature":  {paymentprovider.TimestampHeader, timestamp},
		"no timestamp":  {paymentprovider.SignatureHeader, signature},
		"two of each":   {paymentprovider.TimestampHeader, timestamp, paymentprovider.TimestampHeader, timestamp, paymentprovider.SignatureHeader, signature},
		"another's":     {paymentprovider.TimestampHeader, timestamp, paymentprovider.SignatureHeader, strings.Repeat("0", 64)},
		"too old":       {paymentprovider.TimestampHeader, oldTime, paymentprovider.SignatureHeader, oldSignature},
		"bearer tokens": {"Authorization", "Bearer " + h.token(operator())},
	} {
		r := h.ask(nil, "POST", callback, body, header...)
		require.Equal(t, http.StatusUnauthorized, r.Status, "%s: %s", name, r.raw)
		require.Equal(t, "HMAC-SHA256", r.Header.Get("WWW-Authenticate"))
	}
	require.Equal(t, "UNAUTHENTICATED", h.ask(nil, "POST", callback, body+" ", paymentprovider.TimestampHeader, timestamp, paymentprovider.SignatureHeader, signature).Reason)
	require.Equal(t, before, h.changes())
	require.NotContains(t, h.log.String(), "level=ERROR")
}

func TestPaymentCallback_NeedsASecret(t *testing.T) {
	h := newFixture(t)
	handler := httpapi.New(httpapi.Deps{Payments: h, Metrics: &recordedMetrics{}, Log: slog.New(slog.DiscardHandler)}, httpapi.Options{})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, callback, strings.NewReader(`{}`)))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), "SECKILL_PAYMENT_SECRET is not set")
}

// What is behind the door gets numbers sealed; who may see one sees it whole, and lists show its end.
func TestPhones_AreEncryptedBeforeTheServices(t *testing.T) {
	h := newFixture(t)
	f := h.fixture()
	r := h.as(buyer(), "POST", "/"+f.Path+"/decrStock", `{"goodsId":"`+text(longID)+`"}`)
	require.Equal(t, http.StatusAccepted, r.Status, r.raw)
	var queued struct{ OrderSn string }
	r.into(h, &queued)
	kept := h.orders[queued.OrderSn]
	require.NotEmpty(t, kept.Phone)
	require.NotContains(t, kept.Phone, buyer().Phone)
	require.Contains(t, h.as(buyer(), "GET", "/orders/"+queued.OrderSn, "").raw, `"phoneNumber":"`+buyer().Phone+`"`)
	require.Contains(t, h.as(buyer(), "GET", "/orders", "").raw, `"phoneNumber":"**********3456"`)
	csv := h.csv(merchant(), "/admin/sales/"+text(longID)+"/orders?format=csv")
	require.Contains(t, csv, ",'"+buyer().Phone+",")
	require.NotContains(t, csv, kept.Phone)

	h.order("order-7", longID, seckill.Actor{ID: buyer().ID, Phone: "~1.gone.AAAA"})
	require.Contains(t, h.as(buyer(), "GET", "/orders/order-7", "").raw, `"phoneNumber":""`)
	require.Contains(t, h.log.String(), "phone number cannot be decrypted")
	require.NotContains(t, h.log.String(), "AAAA")
	require.Equal(t, order.Created, h.orders["order-7"].Status)
}
