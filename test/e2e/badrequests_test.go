package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/badrequests"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// paymentSecret signs the reports of payments.
const paymentSecret = "the payment secret of this test, of 32 bytes or more"

// badRequestsChangeNothing sends each malformed request to a running API. The API refuses each with
// its documented reason. Both sales and the order stay as they were.
func badRequestsChangeNothing(t *testing.T, r *installation.Installation) {
	f := fixture(t, r)
	state := func() []any {
		return []any{
			r.APIs[0].CountLogLines("level=ERROR"), // a bad request is no error of the API
			r.Facts(t, id(f.GoodsID)), r.Facts(t, id(f.OtherGoods)),
			ledger(t, r, f.GoodsID), ledger(t, r, f.OtherGoods),
		}
	}
	before := state()
	cases := must.Get(badrequests.Cases(f))(t)
	require.Greater(t, len(cases), 100)
	client := apicheck.Client(t, &http.Client{Timeout: 30 * time.Second})
	defer client.CloseIdleConnections()
	for _, c := range cases {
		assert.NoError(t, badrequests.Check(t.Context(), client, r.Base(0), c))
	}
	require.Equal(t, before, state())
	t.Logf("%d malformed requests", len(cases))
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

func ledger(t *testing.T, r *installation.Installation, goods int64) apiclient.Ledger {
	return must.Get(r.Merchant(t).Ledger(t.Context(), id(goods)))(t)
}

// fixture creates two sales, and one buyer's order and unused path.
func fixture(t *testing.T, r *installation.Installation) badrequests.Fixture {
	f := badrequests.Fixture{
		Secret: []byte(installation.Secret), PaymentSecret: []byte(paymentSecret),
		GoodsID:    installation.Number(t, r.PutUp(t, 10, 5)),
		OtherGoods: installation.Number(t, r.PutUp(t, 10, 5)), NoGoods: 1,
		Buyer:      seckill.Actor{ID: "100", Role: seckill.Buyer},
		OtherBuyer: seckill.Actor{ID: "101", Role: seckill.Buyer},
		Merchant: seckill.Actor{
			ID: fmt.Sprint(installation.MerchantID), Role: seckill.Merchant,
		},
		OtherMerchant: seckill.Actor{
			ID: fmt.Sprint(installation.MerchantID + 1), Role: seckill.Merchant,
		},
	}
	client := r.Buyer(t, 100)
	result := must.Get(buyer.Buyer{
		Client: client, ID: 100, GoodsID: id(f.GoodsID), Quantity: 1,
		Patience: 10 * time.Second,
	}.Buy(t.Context()))(t)
	require.Equal(t, "created", result.Status)
	var path struct {
		RandomPath string `json:"randomPath"`
	}
	require.NoError(t, client.Do(t.Context(), "POST", "/randomPath?goodsId="+id(f.GoodsID), nil,
		&path))
	f.OrderSn, f.Path = result.OrderSn, path.RandomPath
	return f
}
