package inventory

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
)

type liveStore = livesales.Store

// manySales are 800 sales. Redis has the terms of all of them but one.
type manySales struct {
	liveStore
	Store
	Redis
	views  int // that were read
	synced []int64
}

func sale(goodsID int64) seckill.Sale {
	return seckill.Sale{GoodsID: goodsID, PerBuyerLimit: 1, Epoch: 1}
}

func (*manySales) LiveVersion(context.Context) (int64, error) { return 1, nil }

func (*manySales) LiveGoods(context.Context) ([]seckill.Sale, error) {
	sales := make([]seckill.Sale, 800)
	for i := range sales {
		sales[i] = sale(int64(i) + 1)
	}
	return sales, nil
}

func (*manySales) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (*manySales) OpenCuts(context.Context, time.Time, string, int) ([]StockCut, error) {
	return nil, nil
}

func (*manySales) Sale(_ context.Context, goodsID int64) (seckill.Sale, error) {
	return sale(goodsID), nil
}

func (m *manySales) View(ctx context.Context, goodsID int64) (seckill.View, error) {
	return m.Views(ctx, []int64{goodsID})[goodsID], nil
}

func (m *manySales) Views(_ context.Context, goodsIDs []int64) map[int64]seckill.View {
	m.views += len(goodsIDs)
	views := make(map[int64]seckill.View, len(goodsIDs))
	for _, id := range goodsIDs {
		v := seckill.View{Sale: sale(id)}
		if id == 777 && len(m.synced) == 0 {
			v.PerBuyerLimit++
		}
		views[id] = v
	}
	return views
}

func (m *manySales) UpdateSale(_ context.Context, sale seckill.Sale) error {
	m.synced = append(m.synced, sale.GoodsID)
	return nil
}

// TestChangeSyncer_ManySalesCostLittle counts the views that are read in 20 s while 800 sales sell,
// and checks that the one that lacks a change gets it.
func TestChangeSyncer_ManySalesCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, log := &manySales{}, slog.New(slog.DiscardHandler)
		live := &livesales.List{Store: m, Log: log}
		live.Refresh(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		syncer := ChangeSyncer{Stores: Stores{Store: m, Redis: m, Log: log}, Live: live}
		require.NoError(t, syncer.Run(ctx))
		require.Equal(t, []int64{777}, m.synced)
		require.Less(t, m.views, 2000)
	})
}
