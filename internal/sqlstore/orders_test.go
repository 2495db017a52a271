package sqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/testing/must"
)

func (h fixture) TestCountOrders_GroupsByStatus(t *testing.T) {
	sale := h.exposed(10, 3)
	a, b := h.line(sale, 1, 2), h.line(sale, 2, 1)
	h.writeAll(sale.GoodsID, a, b, h.line(sale, 3, 3))
	must.Get(h.Pay(sale.GoodsID, a.OrderSn, today))(t)
	must.Get(h.CancelOne(sale.GoodsID, b.OrderSn, today))(t)
	sns := []string{b.OrderSn, "unknown", a.OrderSn}
	require.ElementsMatch(t, []string{a.OrderSn, b.OrderSn},
		orderSns(must.Get(h.OrdersByNumber(t.Context(), sale.GoodsID, sns))(t)))
	require.Equal(t, map[order.Status]stats.Count{
		order.Paid:      {Orders: 1, Units: 2, Amount: 3998},
		order.Cancelled: {Orders: 1, Units: 1, Amount: 1999},
		order.Created:   {Orders: 1, Units: 3, Amount: 5997},
	}, must.Get(h.CountOrders(t.Context(), sale.GoodsID))(t))
}
