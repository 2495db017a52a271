package badrequests

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/paymentprovider"
)

// callbacks adds reports of payments that nobody signed, and signed ones with bad fields.
func (t *table) callbacks() error {
	signer, err := paymentprovider.NewSigner(t.PaymentSecret, time.Now)
	if err != nil {
		return fmt.Errorf("bad input: %w", err)
	}
	const target = "/payments/callback"
	signed := func(what, body, field string) {
		timestamp, signature := signer.Sign([]byte(body))
		t.bad(what, post(target, "", body), field)
		t.with(http.CanonicalHeaderKey(paymentprovider.TimestampHeader), timestamp)
		t.with(http.CanonicalHeaderKey(paymentprovider.SignatureHeader), signature)
	}
	good := fmt.Sprintf(`{"paymentId":"p-1","orderSn":%q,"amount":1}`, t.OrderSn)
	timestamp, signature := signer.Sign([]byte(good))
	for name, header := range map[string][2]string{
		"without a signature":   {},
		"with a bad signature":  {timestamp, strings.Repeat("0", 64)},
		"with an old signature": {"1700000000", signature},
		"with no time":          {"now", signature},
	} {
		t.add("a payment "+name, post(target, "", good), apierror.Unauthenticated,
			http.StatusUnauthorized, "")
		if header[0] != "" {
			t.with(http.CanonicalHeaderKey(paymentprovider.TimestampHeader), header[0])
			t.with(http.CanonicalHeaderKey(paymentprovider.SignatureHeader), header[1])
		}
	}
	wrong := []string{"null", "true", "[]", "{}", "1.5", "\"\xff\""}
	for field, values := range map[string][]string{
		"paymentId": slices.Concat(wrong, []string{"", "1", `""`, text(65), `"a b"`, `"é"`, `"a/b"`}),
		"orderSn":   slices.Concat(wrong, []string{"", "1"}),
		"amount": slices.Concat(wrong, []string{
			"", "-1", `"1"`, "1e2", "9223372036854775808",
		}),
	} {
		for _, v := range values {
			fields := map[string]string{
				"paymentId": `"p-1"`, "orderSn": fmt.Sprintf("%q", t.OrderSn), "amount": "1",
			}
			fields[field] = v
			var all []string
			for _, name := range []string{"paymentId", "orderSn", "amount"} {
				if fields[name] != "" {
					all = append(all, fmt.Sprintf("%q:%s", name, fields[name]))
				}
			}
			signed(fmt.Sprintf("%s %.20s of a payment", field, v), "{"+strings.Join(all, ",")+"}", field)
		}
	}
	signed("an unknown field of a payment", strings.TrimSuffix(good, "}")+`,"state":"paid"}`, "state")
	signed("a payment that is no JSON object", "[]", "body")
	unknown := strings.Replace(good, t.OrderSn, strings.Repeat("0", len(t.OrderSn)), 1)
	signed("a payment of no order", unknown, "")
	last := &t.cases[len(t.cases)-1]
	last.Reason, last.Status = apierror.NotFound, http.StatusNotFound
	return nil
}
