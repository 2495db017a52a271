package order_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// mended audits a sale once, and gives what was found with the log's lines.
func (h *house) mended(a *reconcile.Reconciler, goods int64) reconcile.Report {
	h.t.Helper()
	seen, err := a.Reconcile(h.t.Context(), goods)
	require.NoError(h.t, err)
	return seen
}

func TestTheAuditTellsTotalsThatDiffer(t *testing.T) {
	h := open(t)
	sale := h.putUp(5, 2)
	var log bytes.Buffer
	a := reconcile.NewReconciler(nil, h.store, h.shelf, nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	_, err := h.mini.HIncrBy(fmt.Sprintf("sk:{%d}", sale.GoodsID), "avail", -2)
	require.NoError(t, err)
	require.Zero(t, h.mended(a, sale.GoodsID).Found, "it may have been looked at in the middle of something")
	for range 2 {
		require.Equal(t, seckill.Differences{Totals: 1}, h.mended(a, sale.GoodsID).Found)
	}
	require.Equal(t, 2, strings.Count(log.String(), "difference=totals"))
	l := h.ledger(sale.GoodsID)
	require.False(t, l.Balanced)
	require.Equal(t, seckill.Differences{Totals: 1}, l.Differences)
}

// TestUnitsHeldForAFailedOrderGoBack: they were adopted when its failure was written and its move given already.
func TestUnitsHeldForAFailedOrderGoBack(t *testing.T) {
	h := open(t)
	sale := h.putUp(5, 2)
	l := h.numbered(sale.GoodsID, 1, 7)
	out, err := h.store.WriteFailed(t.Context(), sale.GoodsID, l, 1, order.FailedUnwritten, order.DeadLetter{}, time.Now())
	require.NoError(t, err)
	giver := inventory.NewStockReleaser(h.store, h.shelf, h.parts.Log)
	giver.Release(t.Context(), out.Moves)
	_, err = h.shelf.Adopt(t.Context(), sale.GoodsID, 1, 0, []reservation.OrderLine{l})
	require.NoError(t, err)
	h.mini.SetTime(time.Now().Add(6 * time.Second))
	var log bytes.Buffer
	a := reconcile.NewReconciler(nil, h.store, h.shelf, nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	seen := h.mended(a, sale.GoodsID)
	require.Equal(t, seckill.Differences{Unsettled: 1}, seen.Found)
	require.Equal(t, 1, seen.Repaired)
	require.Contains(t, log.String(), l.OrderSn)
	h.work(settings())
	h.settles(sale.GoodsID, 5, 0)
}
