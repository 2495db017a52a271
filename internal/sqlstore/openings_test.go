package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestOpening_EndsBeforeTheNextEpoch checks the record of an opening. Only the newest token and the
// present epoch may make one. A rebuild ends it and keeps its lease until the next epoch begins. No
// epoch begins before it has ended.
func (h fixture) TestOpening_EndsBeforeTheNextEpoch(t *testing.T) {
	sale := h.exposed(10, 5)
	open := func() []rebuild.OpenSale { return must.Get(h.OpenOn(t.Context(), "one", today))(t) }
	token := must.Get(h.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	require.ErrorIs(t, h.RecordOpening(t.Context(), sale.GoodsID, token-1, sale.Epoch, "one"),
		rebuild.ErrFenced)
	require.ErrorIs(t, h.RecordOpening(t.Context(), sale.GoodsID, token, sale.Epoch-1, "one"),
		rebuild.ErrFenced)
	require.Empty(t, open())
	require.NoError(t, h.RecordOpening(t.Context(), sale.GoodsID, token, sale.Epoch, "one"))
	require.Equal(t, []rebuild.OpenSale{{GoodsID: sale.GoodsID, Epoch: sale.Epoch}}, open())
	require.Equal(t, "one", must.Get(h.OpenedOn(t.Context(), sale.GoodsID))(t))
	_, err := h.BeginEpoch(t.Context(), sale.GoodsID, token, at(today))
	require.ErrorIs(t, err, rebuild.ErrFenced, "the gate may be open")

	newer := must.Get(h.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	_, err = h.EndOpening(t.Context(), sale.GoodsID, token)
	require.ErrorIs(t, err, rebuild.ErrFenced)
	require.ErrorIs(t, h.RecordOpening(t.Context(), sale.GoodsID, newer, sale.Epoch, ""),
		rebuild.ErrFenced, "the opening has not ended")
	for range 2 { // a rebuild that dies is repeated, and must wait as well
		require.Equal(t, "one", must.Get(h.EndOpening(t.Context(), sale.GoodsID, newer))(t))
		require.Empty(t, open())
		require.Empty(t, must.Get(h.OpenedOn(t.Context(), sale.GoodsID))(t))
	}
	require.NoError(t, h.RecordOpening(t.Context(), sale.GoodsID, newer, sale.Epoch, ""))
	require.Empty(t, must.Get(h.EndOpening(t.Context(), sale.GoodsID, newer))(t))
	must.Get(h.BeginEpoch(t.Context(), sale.GoodsID, newer, at(today)))(t)
	require.Empty(t, must.Get(h.EndOpening(t.Context(), sale.GoodsID, newer))(t))
}

// TestOpenOn_LeavesOutRetiredSales checks that the gate of a retired sale is renewed only until the
// sale leaves Redis.
func (h fixture) TestOpenOn_LeavesOutRetiredSales(t *testing.T) {
	sale := h.exposed(10, 5)
	require.NoError(t, h.RecordOpening(t.Context(), sale.GoodsID, 1, sale.Epoch, "one"))
	after := sale.EndAt.Add(48 * time.Hour)
	require.True(t, h.retire(sale.GoodsID, after))
	require.Len(t, must.Get(h.OpenOn(t.Context(), "one", after.Add(-time.Minute)))(t), 1)
	require.Empty(t, must.Get(h.OpenOn(t.Context(), "one", after))(t))
}
