package stats

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestRevenue_OfTheLargestSaleDoesNotOverflow sells all units of the largest stock at the highest
// price. The product has no int64.
func TestRevenue_OfTheLargestSaleDoesNotOverflow(t *testing.T) {
	t.Parallel()
	paid := func(context.Context, []int64) (map[int64]int64, error) {
		return map[int64]int64{1: seckill.MaxStock, 2: 9}, nil
	}
	revenue := must.Get(NewService(nil, nil, nil, nil, paid).Revenue(t.Context(), []seckill.Sale{
		{GoodsID: 1, Price: seckill.MaxPrice}, {GoodsID: 2, Price: seckill.MaxPrice}, {GoodsID: 3},
	}))(t)
	require.Equal(t,
		map[int64]int64{1: math.MaxInt64, 2: 9 * seckill.MaxPrice, 3: 0}, revenue)
}
