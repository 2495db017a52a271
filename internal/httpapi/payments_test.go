package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

const callback = "/payments/callback"

// pays sends a callback with the provider's signature. It adds header fields, which come in pairs.
func (h *fixture) pays(target, body string, header ...string) reply {
	h.t.Helper()
	return h.ask("POST", target, body, append(signedWith(h.signer, body), header...)...)
}

// signedWith returns the header fields of a signed body.
func signedWith(s *paymentprovider.Signer, body string) []string {
	timestamp, signature := s.Sign([]byte(body))
	return []string{
		paymentprovider.TimestampHeader, timestamp, paymentprovider.SignatureHeader, signature,
	}
}

func TestPaymentCallback_RecordsAPayment(t *testing.T) {
	h := newFixture(t)
	h.order("order-1", longID, buyer())
	good := `{"paymentId":"p-1","orderSn":"order-1","amount":399800}`
	for range 2 {
		r := h.want(200, h.pays(callback, good))
		require.JSONEq(t, `{"paymentId":"p-1","orderSn":"order-1","amount":399800,
			"state":"kept","orderStatus":"paid"}`, string(r.Data))
	}
	h.order("order-2", longID, buyer())
	h.want(200, h.as(buyer(), "POST", "/orders/order-2/cancel", ""))
	r := h.pays(callback, strings.ReplaceAll(good, "-1", "-2"))
	require.JSONEq(t, `{"paymentId":"p-2","orderSn":"order-2","amount":399800,
		"state":"refunding","reason":"CANCELLED","orderStatus":"cancelled"}`, string(r.Data))

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
	require.Equal(t, "BAD_REQUEST", h.pays(callback+"?amount=399800", good).Reason,
		"the API must refuse a field outside the signed body")
	require.Equal(t, "BAD_REQUEST", h.pays(callback, good, "Content-Type", "text/plain").Reason)
}

func TestPaymentCallback_RefusesBadSignatures(t *testing.T) {
	h := newFixture(t)
	h.order("order-1", longID, buyer())
	body := `{"paymentId":"p-1","orderSn":"order-1","amount":399800}`
	good := signedWith(h.signer, body)
	timestamp, signature := good[:2], good[2:]
	past := must.Get(paymentprovider.NewSigner(secret, func() time.Time {
		return h.now.Add(-paymentprovider.Tolerance - time.Second)
	}))(t)
	before := h.changes()
	for name, header := range map[string][]string{
		"nothing":       nil,
		"no signature":  timestamp,
		"no timestamp":  signature,
		"two of each":   slices.Concat(good, good),
		"another's":     slices.Concat(timestamp, signature[:1], []string{strings.Repeat("0", 64)}),
		"too old":       signedWith(past, body),
		"another body":  signedWith(h.signer, body+" "),
		"bearer tokens": {"Authorization", h.bearer(operator())},
	} {
		r := h.ask("POST", callback, body, header...)
		require.Equal(t, http.StatusUnauthorized, r.Status, "%s: %s", name, r.raw)
		require.Equal(t, "HMAC-SHA256", r.Header.Get("WWW-Authenticate"))
	}
	require.Equal(t, before, h.changes())
	require.NotContains(t, h.logged(), "level=ERROR")
}

func TestPaymentCallback_NeedsASecret(t *testing.T) {
	h := newFixture(t, func(d *httpapi.Deps) { d.Callbacks = nil })
	r := h.want(403, h.pays(callback, `{}`))
	require.Contains(t, r.Message, "SECKILL_PAYMENT_SECRET is not set")
}

// TestPhones_AreEncryptedBeforeTheServices checks that handlers pass encrypted phone numbers to the
// services. An order shows its buyer the whole number. A list shows only the last digits.
func TestPhones_AreEncryptedBeforeTheServices(t *testing.T) {
	h := newFixture(t)
	f := h.fixture()
	sn := h.buys(f.Path, longID, 1)
	kept := h.orders[sn]
	require.NotEmpty(t, kept.Phone)
	require.NotContains(t, kept.Phone, buyer().Phone)
	require.Contains(t, h.as(buyer(), "GET", "/orders/"+sn, "").raw,
		`"phoneNumber":"`+buyer().Phone+`"`)
	require.Contains(t, h.as(buyer(), "GET", "/orders", "").raw, `"phoneNumber":"**********3456"`)
	res, csv := h.do("GET", "/admin/sales/"+text(longID)+"/orders?format=csv", "",
		"Authorization", h.bearer(merchant()))
	require.Contains(t, res.Header.Get("Content-Type"), "text/csv")
	require.Contains(t, csv, ",'"+buyer().Phone+",")
	require.NotContains(t, csv, kept.Phone)

	h.order("order-7", longID, seckill.Actor{ID: buyer().ID, Phone: "~1.gone.AAAA"})
	require.Contains(t, h.as(buyer(), "GET", "/orders/order-7", "").raw, `"phoneNumber":""`)
	require.Contains(t, h.logged(), "phone number cannot be decrypted")
	require.NotContains(t, h.logged(), "AAAA")
	require.Equal(t, order.Created, h.orders["order-7"].Status)
}
