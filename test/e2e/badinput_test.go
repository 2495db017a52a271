package e2e

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi/badinput"
	"flashsale.dev/seckill/internal/httpapi/spectest"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/test/rig"
)

// TestBadInputChangesNothing sends every malformed request to a running API: each is refused by name, and afterwards
// both sales and the order are as they were.
func TestBadInputChangesNothing(t *testing.T) {
	r := rig.Start(t, suite, rig.Options{})
	f := fixture(t, r)
	before := []any{r.Facts(t, id(f.GoodsID)), r.Facts(t, id(f.OtherGoods)), ledger(t, r, f.GoodsID), ledger(t, r, f.OtherGoods)}
	cases, err := badinput.Cases(f)
	require.NoError(t, err)
	require.Greater(t, len(cases), 100)
	client := spectest.Client(t, &http.Client{Timeout: 30 * time.Second})
	defer client.CloseIdleConnections()
	for _, c := range cases {
		assert.NoError(t, badinput.Check(t.Context(), client, r.Base(0), c))
	}
	after := []any{r.Facts(t, id(f.GoodsID)), r.Facts(t, id(f.OtherGoods)), ledger(t, r, f.GoodsID), ledger(t, r, f.OtherGoods)}
	require.Equal(t, before, after)
	t.Logf("%d malformed requests", len(cases))
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

func ledger(t *testing.T, r *rig.Rig, goods int64) apiclient.Ledger {
	t.Helper()
	l, err := r.Merchant(t).Ledger(t.Context(), id(goods))
	require.NoError(t, err)
	return l
}

// fixture puts up two sales, and an order and an unused path of a buyer's.
func fixture(t *testing.T, r *rig.Rig) badinput.Fixture {
	t.Helper()
	number := func(goods string) int64 {
		n, err := strconv.ParseInt(goods, 10, 64)
		require.NoError(t, err)
		return n
	}
	f := badinput.Fixture{
		Secret: []byte(rig.Secret), GoodsID: number(r.PutUp(t, 10, 5)), OtherGoods: number(r.PutUp(t, 10, 5)), NoGoods: 1,
		Buyer: seckill.Actor{ID: 100, Role: seckill.Buyer}, OtherBuyer: seckill.Actor{ID: 101, Role: seckill.Buyer},
		Merchant:      seckill.Actor{ID: rig.MerchantID, Role: seckill.Merchant},
		OtherMerchant: seckill.Actor{ID: rig.MerchantID + 1, Role: seckill.Merchant},
	}
	client := r.Buyer(t, f.Buyer.ID)
	told, err := buyer.Buyer{Client: client, ID: f.Buyer.ID, GoodsID: id(f.GoodsID), Quantity: 1, Patience: 10 * time.Second}.Buy(t.Context())
	require.NoError(t, err)
	require.Equal(t, "created", told.Status)
	var path struct {
		RandomPath string `json:"randomPath"`
	}
	require.NoError(t, client.Do(t.Context(), "POST", "/randomPath?goodsId="+id(f.GoodsID), nil, &path))
	f.OrderSn, f.Path = told.OrderSn, path.RandomPath
	return f
}
