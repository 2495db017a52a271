package faults

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/testing/installation"
)

// requireEveryAPISells requires each API to sell a unit over the run's order queue. The run itself
// would hide an API that has lost a server for good: buyers turn to another API, and the relay
// publishes the failed API's reservations.
func (r *run) requireEveryAPISells(t *testing.T) {
	t.Helper()
	goods := r.saleOfQueue(t, int64(len(r.APIs)), true)
	for i := range r.APIs {
		c := r.Buyer(t, 1<<43+int64(i))
		c.Base = r.Base(i)
		awaitPromise(t, c, goods)
		c.HTTP.CloseIdleConnections()
	}
	require.EqualValues(t, len(r.APIs), r.Drained(t, goods, patience).Sold)
}

// saleOfQueue creates a sale whose orders go through the order queue of the run's own sale, or
// through another one if sameQueue is false. It returns the goods id.
func (r *run) saleOfQueue(t *testing.T, units int64, sameQueue bool) string {
	queue := order.Shard(r.goodsID(t), r.shards)
	for {
		goods := r.PutUp(t, units, 1)
		if (order.Shard(installation.Number(t, goods), r.shards) == queue) == sameQueue {
			return goods
		}
	}
}

// awaitPromise repeats a purchase at one API until it is answered with 202.
func awaitPromise(t *testing.T, c apiclient.Client, goods string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		answer, err := buy(t.Context(), c, goods)
		if err == nil && answer.Status == http.StatusAccepted {
			return
		}
		require.Less(t, time.Since(began), patience, "%s sells nothing any more: %d %s %s %v",
			c.Base, answer.Status, answer.Reason, answer.Message, err)
	}
}

// buy asks for a random path and buys one unit with it. It returns the last answer.
func buy(ctx context.Context, c apiclient.Client, goods string) (apiclient.Answer, error) {
	answer, err := c.Call(ctx, http.MethodPost, "/randomPath?goodsId="+goods, nil)
	var grant struct{ RandomPath string }
	if err != nil || answer.Into(&grant) != nil {
		return answer, err
	}
	path := "/" + grant.RandomPath + "/decrStock?goodsId=" + goods
	return c.Call(ctx, http.MethodPost, path, nil)
}
