package app_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestOrder_OtherNodeKnowsASaleExposedJustNow checks that a node that remembers a draft as missing
// answers for an order of the sale that another node has exposed since: for its number, and for its
// path. No worker runs, so only Redis has the order, and no confirm comes. The node remembers for a
// second, so all this happens within it on any but a very slow machine.
func TestOrder_OtherNodeKnowsASaleExposedJustNow(t *testing.T) {
	t.Parallel()
	h := openIdle(t, time.Hour)
	other, goods, who := h.second(), h.draft("3", "2"), buyer(1)
	other.refuses("NOT_FOUND", who, "GET", "/sales/"+goods, "")
	h.does(merchant(), "POST", "/admin/sales/"+goods+"/expose", "")
	path := dataOf[struct{ RandomPath string }](t,
		h.does(who, "POST", "/randomPath?goodsId="+goods, "")).RandomPath
	sn := must.Get(ordersn.NewKeys(secret).VerifyPath(path, h.id(goods), who.ID, time.Now()))(t)
	take := `{"goodsId":"` + goods + `","decrStock":1}`
	var g errgroup.Group
	g.Go(func() error { h.as(who, "POST", "/"+path+"/decrStock", take); return nil })
	h.eventually(func() bool {
		v, err := h.RedisStore.View(t.Context(), h.id(goods))
		return err == nil && v.Pending == 1
	}, "nothing was reserved")

	found := other.does(who, "GET", "/orders/"+sn.String(), "")
	require.Contains(t, found.Body, `"status":"queued"`)
	again := other.as(who, "POST", "/"+path+"/decrStock", take)
	require.Equal(t, "UNAVAILABLE", again.Reason, again.Body)
	require.NoError(t, g.Wait())
}
