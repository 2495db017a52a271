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
	"flashsale.dev/seckill/internal/seckill"
)

// manyStore has an overdue order of one of many sales.
type manyStore struct {
	Store
	statements int
	expired    []int64
}

func (m *manyStore) Now(context.Context) (time.Time, error) {
	m.statements++
	return time.Now(), nil
}

func (m *manyStore) Overdue(_ context.Context, goodsIDs []int64, _ time.Time) ([]int64, error) {
	m.statements++
	if len(m.expired) > 0 {
		return nil, nil
	}
	return goodsIDs[6:7], nil
}

func (m *manyStore) ExpireDue(
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
		sales := make([]seckill.Sale, 800)
		for i := range sales {
			sales[i].GoodsID = int64(i) + 1
		}
		m := &manyStore{}
		ctx, cancel := context.WithTimeout(t.Context(), 9900*time.Millisecond)
		defer cancel()
		e := Expirer{
			Sales: func() []seckill.Sale { return sales }, Store: m,
			Releaser: &inventory.StockReleaser{}, Log: slog.New(slog.DiscardHandler),
		}
		require.NoError(t, e.Run(ctx))
		require.Equal(t, []int64{7}, m.expired)
		require.Equal(t, 41, m.statements)
	})
}
