package catalog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// partialRedis is a Redis cluster with failed masters and a MySQL with three sales.
type partialRedis struct {
	down map[int64]bool
}

var errNoAnswer = errors.New("no answer")

func (h partialRedis) View(_ context.Context, goodsID int64) (seckill.View, error) {
	if h.down[goodsID] {
		return seckill.View{}, errNoAnswer
	}
	return seckill.View{Sale: seckill.Sale{GoodsID: goodsID}, Available: 5}, nil
}

func (h partialRedis) Sale(_ context.Context, goodsID int64) (seckill.Sale, error) {
	return seckill.Sale{GoodsID: goodsID, Total: 10, Stock: 7}, nil
}

func (h partialRedis) ExposedSales(
	ctx context.Context, _ int64, _ int,
) (list []seckill.Sale, err error) {
	for goodsID := range int64(3) {
		sale, _ := h.Sale(ctx, goodsID)
		list = append(list, sale)
	}
	return list, nil
}

func (partialRedis) IssuePaths(
	context.Context, int64, int64, time.Duration, []reservation.PathGrant,
) (time.Time, error) {
	return time.Time{}, errNoAnswer
}

// TestSales_FailedMasterLeavesOtherSalesListed checks that the catalog reads the sales of a failed
// master from MySQL. It fails only if every master has failed.
func TestSales_FailedMasterLeavesOtherSalesListed(t *testing.T) {
	h := partialRedis{down: map[int64]bool{1: true}}
	sales := catalog.NewCatalog(catalog.NewSaleReader(h, h), h)
	views := must.Get(sales.Sales(t.Context(), 0, 3))(t)
	for i, want := range []int64{5, 7, 5} {
		require.EqualValues(t, i, views[i].GoodsID)
		require.Equal(t, want, views[i].Available)
	}
	require.Equal(t, seckill.GateMissing, views[1].Gate, "the catalog reads the sale from MySQL")

	h.down[0], h.down[2] = true, true
	_, err := sales.Sales(t.Context(), 0, 3)
	require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err), "every master failed")
}
