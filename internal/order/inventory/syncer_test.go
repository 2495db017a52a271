package inventory

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// manyServers have many sales. Redis has the terms of all of them but one.
type manyServers struct {
	Store
	Redis
	views  int // that were read
	synced []int64
}

func sale(goodsID int64) seckill.Sale {
	return seckill.Sale{GoodsID: goodsID, PerBuyerLimit: 1, Epoch: 1}
}

func (*manyServers) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (*manyServers) OpenCuts(context.Context, time.Time, string, int) ([]StockCut, error) {
	return nil, nil
}

func (*manyServers) Sale(_ context.Context, goodsID int64) (seckill.Sale, error) {
	return sale(goodsID), nil
}

func (m *manyServers) View(ctx context.Context, goodsID int64) (seckill.View, error) {
	return m.Views(ctx, []int64{goodsID})[goodsID], nil
}

func (m *manyServers) Views(_ context.Context, goodsIDs []int64) map[int64]seckill.View {
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

func (m *manyServers) UpdateSale(_ context.Context, sale seckill.Sale) error {
	m.synced = append(m.synced, sale.GoodsID)
	return nil
}

// TestChangeSyncer_ManySalesCostLittle counts the views that are read in 20 s while 800 sales sell,
// and checks that the one that lacks a change gets it.
func TestChangeSyncer_ManySalesCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, log := &manyServers{}, slog.New(slog.DiscardHandler)
		sales := make([]seckill.Sale, 800)
		for i := range sales {
			sales[i] = sale(int64(i) + 1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		syncer := ChangeSyncer{
			Stores: Stores{Store: m, Redis: m, Log: log},
			Sales:  func() []seckill.Sale { return sales },
		}
		require.NoError(t, syncer.Run(ctx))
		require.Equal(t, []int64{777}, m.synced)
		require.Less(t, m.views, 2000)
	})
}
