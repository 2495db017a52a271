package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/paymentprovider"
)

const callback = "/payments/callback"

// pays sends a callback with the provider's signature. It adds header fields, which come in pairs.
func (h *fixture) pays(target, body string, header ...string) reply {
	h.t.Helper()
	return h.ask("POST", target, body, append(signedWith(h.Callbacks, body), header...)...)
}

// signedWith returns the header fields of a signed body.
func signedWith(s *paymentprovider.Signer, body string) []string {
	timestamp, signature := s.Sign([]byte(body))
	return []string{
		paymentprovider.TimestampHeader, timestamp, paymentprovider.SignatureHeader, signature,
	}
}

// TestPaymentCallback_RefusesBadFields sends signed callbacks. Package app tests the good ones.
func TestPaymentCallback_RefusesBadFields(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	sn := h.order(buyer(), h.sell(nil), 1)
	good := `{"paymentId":"p-1","orderSn":"` + sn + `","amount":199900}`
	for body, want := range map[string]string{
		``:   "BAD_REQUEST",
		`{}`: "BAD_REQUEST",
		`[]`: "BAD_REQUEST",
		strings.Replace(good, "199900", `"199900"`, 1):                               "BAD_REQUEST",
		strings.Replace(good, "199900", "-1", 1):                                     "BAD_REQUEST",
		strings.Replace(good, "199900", "1.5", 1):                                    "BAD_REQUEST",
		strings.Replace(good, "p-1", "", 1):                                          "BAD_REQUEST",
		strings.Replace(good, "p-1", "p 1", 1):                                       "BAD_REQUEST",
		strings.Replace(good, "p-1", strings.Repeat("p", 65), 1):                     "BAD_REQUEST",
		strings.Replace(good, "}", `,"status":"paid"}`, 1):                           "BAD_REQUEST",
		strings.Replace(good, "}", `,"paymentId":"p-2"}`, 1):                         "BAD_REQUEST",
		`{"paymentId":"p-1","orderSn":"order-9","amount":1}`:                         "NOT_FOUND",
		`{"paymentId":"p-1","orderSn":"` + strings.Repeat("o", 65) + `","amount":1}`: "NOT_FOUND",
		strings.Replace(good, "199900", "0", 1):                                      "CONFLICT",
	} {
		require.Equal(t, want, h.pays(callback, body).Reason, body)
	}
	require.Equal(t, "BAD_REQUEST", h.pays(callback+"?amount=199900", good).Reason,
		"the API must refuse a field outside the signed body")
	require.Equal(t, "BAD_REQUEST", h.pays(callback, good, "Content-Type", "text/plain").Reason)
	require.Contains(t, h.as(buyer(), "GET", "/orders/"+sn, "").Body, `"status":"created"`)
	h.want(200, h.pays(callback, good))
}

// TestPaymentCallback_RefusesBadSignatures checks how the API reads the header fields. Package
// paymentprovider tests the signatures themselves.
func TestPaymentCallback_RefusesBadSignatures(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	sn := h.order(buyer(), h.sell(nil), 1)
	body := `{"paymentId":"p-1","orderSn":"` + sn + `","amount":199900}`
	good := signedWith(h.Callbacks, body)
	for name, header := range map[string][]string{
		"nothing":        nil,
		"two timestamps": slices.Concat(good, good[:2]),
		"two signatures": slices.Concat(good, good[2:]),
		"another body":   signedWith(h.Callbacks, body+" "),
		"bearer tokens":  {"Authorization", h.bearer(operator())},
	} {
		r := h.ask("POST", callback, body, header...)
		require.Equal(t, http.StatusUnauthorized, r.Status, "%s: %s", name, r.Body)
		require.Equal(t, "HMAC-SHA256", r.Header.Get("WWW-Authenticate"))
	}
	require.Contains(t, h.as(buyer(), "GET", "/orders/"+sn, "").Body, `"status":"created"`)
}
