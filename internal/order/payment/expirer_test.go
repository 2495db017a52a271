package payment

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
)

type liveStore = livesales.Store

// manySales are 800 sales. One has an overdue order.
type manySales struct {
	liveStore
	Store
	statements int
	expired    []int64
}

func (*manySales) LiveVersion(context.Context) (int64, error) { return 1, nil }

func (*manySales) LiveGoods(context.Context) ([]seckill.Sale, error) {
	sales := make([]seckill.Sale, 800)
	for i := range sales {
		sales[i].GoodsID = int64(i) + 1
	}
	return sales, nil
}

func (m *manySales) Now(context.Context) (time.Time, error) {
	m.statements++
	return time.Now(), nil
}

func (m *manySales) Overdue(_ context.Context, goodsIDs []int64, _ time.Time) ([]int64, error) {
	m.statements++
	if len(m.expired) > 0 {
		return nil, nil
	}
	return goodsIDs[6:7], nil
}

func (m *manySales) ExpireDue(
	_ context.Context, goodsID int64, _ time.Time, _ int,
) ([]order.StockMove, error) {
	m.statements++
	if goodsID == 7 {
		m.expired = append(m.expired, goodsID)
	}
	return nil, nil
}

// TestExpirer_SalesShareAStatement counts the statements of 10 s in which 800 sales sell and an
// order of one is overdue.
func TestExpirer_SalesShareAStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, log := &manySales{}, slog.New(slog.DiscardHandler)
		live := &livesales.List{Store: m, Log: log}
		live.Refresh(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 9900*time.Millisecond)
		defer cancel()
		e := Expirer{Live: live, Store: m, Releaser: &inventory.StockReleaser{}, Log: log}
		require.NoError(t, e.Run(ctx))
		require.Equal(t, []int64{7}, m.expired)
		require.Equal(t, 41, m.statements)
	})
}
