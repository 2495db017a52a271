package order_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// exec runs a statement on the test's own connection to the database.
func (h *fixture) exec(statement string, args ...any) {
	h.t.Helper()
	db, err := sql.Open("sqlite", h.file) // the store registers this driver
	require.NoError(h.t, err)
	defer db.Close()
	must.Get(db.ExecContext(h.t.Context(), statement, args...))(h.t)
}

func (h *fixture) retired(goods int64) bool {
	h.t.Helper()
	sale := must.Get(h.store.Sale(h.t.Context(), goods))(h.t)
	return sale.Retired
}

// TestRetirer_RemovesEndedSaleFromRedis checks that the retirer waits until every order of an ended
// sale is final, and then removes the sale from Redis. A late order makes the rebuilder load the
// sale again.
func TestRetirer_RemovesEndedSaleFromRedis(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	stop := h.runWorkers(settings())
	sn := h.buy(sale.GoodsID, 7, 2)
	h.becomes(7, sn, order.Created)
	h.settles(sale.GoodsID, 3, 2)
	stop()
	retirer := rebuild.Retirer{Store: h.store, Redis: h.redis, Log: h.parts.Log}
	require.NoError(t, retirer.RunOnce(t.Context()))
	require.False(t, h.retired(sale.GoodsID), "the sale has not ended")
	h.exec(`UPDATE sales SET end_at = ?`, time.Now().Add(-25*time.Hour).UnixMilli())
	require.NoError(t, retirer.RunOnce(t.Context()))
	require.False(t, h.retired(sale.GoodsID), "an order may still be paid")
	must.Get(h.Payments.Pay(t.Context(), buyer(7), sn))(t)
	require.NoError(t, retirer.RunOnce(t.Context()))
	require.True(t, h.retired(sale.GoodsID))

	h.exec(`UPDATE sales SET retired_at = ?`, time.Now().Add(-10*time.Minute).UnixMilli())
	require.NoError(t, retirer.RunOnce(t.Context()))
	_, err := h.redis.View(t.Context(), sale.GoodsID)
	require.ErrorIs(t, err, seckill.ErrNotLoaded)
	h.mini.FastForward(24 * time.Hour)
	require.Empty(t, h.mini.Keys(), "the used path expires after a day and leaves no other key")

	h.runWorkers(settings())
	l := h.ledger(sale.GoodsID)
	require.True(t, l.Balanced, "MySQL alone supplies the ledger: %+v", l)
	require.Equal(t, []int64{5, 3, 2, 1}, []int64{l.Total, l.Available, l.Sold, l.Epoch})
	require.Equal(t, order.Paid, h.find(7, sn).Status)
	_, err = h.Orders.Find(t.Context(), buyer(7), h.numbered(sale.GoodsID, 1, 7).OrderSn)
	require.Equal(t, seckill.NotFound, seckill.ReasonOf(err))

	// A late order makes the rebuilder load the sale again, and the batch writer writes the order.
	late := h.numbered(sale.GoodsID, 1, 8)
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, late))
	h.becomes(8, late.OrderSn, order.Created)
	require.False(t, h.retired(sale.GoodsID))
	h.settles(sale.GoodsID, 2, 3)
}
