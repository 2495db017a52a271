package order_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
)

// counter is a store whose cancellations take 50 ms. It records how many run at the same time.
type counter struct {
	*sqlstore.Store
	inside, most, asked atomic.Int32
}

func (c *counter) Cancel(
	ctx context.Context, goodsID int64, sns []string, now time.Time,
) ([]payment.Cancellation, error) {
	defer c.inside.Add(-1)
	c.most.Store(max(c.most.Load(), c.inside.Add(1)))
	c.asked.Add(int32(len(sns)))
	time.Sleep(50 * time.Millisecond)
	return c.Store.Cancel(ctx, goodsID, sns, now)
}

// TestCancel_ConcurrentCallsShareTransaction checks that concurrent cancellations of a goods share
// one transaction. The batch writer then waits for the goods row behind one transaction and not
// behind one per buyer.
func TestCancel_ConcurrentCallsShareTransaction(t *testing.T) {
	const buyers = 8
	h := newFixture(t)
	sale := h.exposeSale(buyers, 1)
	h.runWorkers(settings())
	sns := make([]string, buyers)
	for i := range sns {
		sns[i] = h.buy(sale.GoodsID, int64(i+1), 1)
	}
	for i, sn := range sns {
		h.becomes(int64(i+1), sn, order.Created)
	}
	must.Get(h.Payments.Pay(t.Context(), buyer(1), sns[0]))(t)
	store := &counter{Store: h.store}
	payments := payment.NewService(h.Orders, store, h.releaser(), nil, h.parts.Log)
	var running sync.WaitGroup
	for i, sn := range sns {
		running.Go(func() {
			o, err := payments.Cancel(t.Context(), buyer(int64(i+1)), sn)
			if i == 0 {
				require.Equal(t, seckill.Conflict, seckill.ReasonOf(err),
					"a paid order can't be cancelled")
				return
			}
			require.NoError(t, err)
			require.Equal(t, order.Cancelled, o.Status)
			require.Equal(t, sn, o.OrderSn)
		})
	}
	running.Wait()
	require.EqualValues(t, 1, store.most.Load(), "two transactions at once for the same row")
	require.EqualValues(t, buyers, store.asked.Load())
	h.settles(sale.GoodsID, buyers-1, 1)
}
