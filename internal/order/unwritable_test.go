package order_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestRebuild_UnwritableOrderDoesNotBlockSale checks that a rebuild finishes although the database
// refuses one order, even as a failed one. The order becomes one dead letter.
func TestRebuild_UnwritableOrderDoesNotBlockSale(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	h.queue.down.Store(true)
	good, bad := h.buy(sale.GoodsID, 1, 1), h.buy(sale.GoodsID, 2, 2)
	h.queue.down.Store(false)
	h.exec(fmt.Sprintf(`CREATE TRIGGER refuse BEFORE INSERT ON orders WHEN NEW.order_sn = '%s'
		BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`, bad))
	rebuilt := make(chan rebuild.Result, 1)
	h.parts.Observers.Rebuilt = func(r rebuild.Result) { rebuilt <- r }
	require.NoError(t, h.redis.Shut(t.Context(), sale.GoodsID, 1))
	h.runWorkers(settings())
	h.becomes(1, good, order.Created)
	h.settles(sale.GoodsID, 4, 1)
	r := <-rebuilt
	require.Equal(t, rebuild.Result{
		GoodsID: sale.GoodsID, Why: r.Why, Was: 1, Epoch: 2, Available: 4, Relayed: 2,
		Found: r.Found, Lost: 1, Attempts: 3, Shut: r.Shut,
	}, r)
	deadLetters := h.deadLetters()
	require.Len(t, deadLetters, 1, "several attempts leave one dead letter")
	require.Equal(t, bad, deadLetters[0].OrderSn)
	m := must.Get(order.Decode(deadLetters[0].Body))(t)
	require.Equal(t, []reservation.OrderLine{
		{OrderSn: bad, BuyerID: 2, Quantity: 2, Name: "韩梅梅", Phone: "13800000000"},
	}, m.Orders)
}
