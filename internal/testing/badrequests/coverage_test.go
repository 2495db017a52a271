package badrequests_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/badrequests"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestCases_CoverTheDocument checks that each call of the document that can answer so has a case
// that expects 400 and one that expects 401. Each field of a call, of its query and of its body,
// has an invalid value.
func TestCases_CoverTheDocument(t *testing.T) {
	document := must.Get(apicheck.Load())(t)
	reasons, fields := map[string][]apierror.Reason{}, map[string][]string{}
	for _, c := range must.Get(badrequests.Cases(fixture()))(t) {
		target := must.Get(url.Parse(c.Target))(t)
		if id := document.OperationID(c.Method, target.Path); id != "" {
			reasons[id] = append(reasons[id], c.Reason)
			if c.Reason == apierror.BadRequest {
				fields[id] = append(fields[id], c.Field)
			}
		}
	}
	for id, call := range document.Calls() {
		operation := call.Operation
		if id == "paymentWebhook" { // without Stripe the API refuses it whole
			continue
		}
		for status, reason := range map[int]apierror.Reason{
			400: apierror.BadRequest, 401: apierror.Unauthenticated,
		} {
			if operation.Responses.Status(status) != nil {
				assert.Contains(t, reasons[id], reason, "no case of %s", id)
			}
		}
		if operation.Responses.Status(400) == nil {
			continue
		}
		query, body := document.Fields(call.Method, call.Path)
		for _, field := range append(query, body...) {
			assert.True(t, slices.ContainsFunc(fields[id], func(named string) bool {
				return named == field || strings.HasPrefix(named, field+".")
			}), "%s: no invalid value of %s", id, field)
		}
	}
}

// fixture is a state that no server has: the test sends nothing.
func fixture() badrequests.Fixture {
	return badrequests.Fixture{
		Secret:        []byte(strings.Repeat("s", 32)),
		PaymentSecret: []byte(strings.Repeat("p", 32)),
		Buyer:         seckill.Actor{ID: "100", Role: seckill.Buyer},
		OtherBuyer:    seckill.Actor{ID: "101", Role: seckill.Buyer},
		Merchant:      seckill.Actor{ID: "1", Role: seckill.Merchant},
		OtherMerchant: seckill.Actor{ID: "2", Role: seckill.Merchant},
		GoodsID:       2, OtherGoods: 3, NoGoods: 1, OrderSn: "order-1",
		Path: strings.Repeat("0", 32),
	}
}
