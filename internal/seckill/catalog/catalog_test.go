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
)

// halves is a Redis in parts, of which some are away, and MySQL with three sales.
type halves struct {
	away map[int64]bool
}

var errAway = errors.New("no answer")

func (h halves) View(_ context.Context, goodsID int64) (seckill.View, error) {
	if h.away[goodsID] {
		return seckill.View{}, errAway
	}
	return seckill.View{Sale: seckill.Sale{GoodsID: goodsID}, Available: 5}, nil
}

func (h halves) Sale(_ context.Context, goodsID int64) (seckill.Sale, error) {
	return seckill.Sale{GoodsID: goodsID, Total: 10, Stock: 7}, nil
}

func (h halves) ExposedSales(ctx context.Context, _ int64, _ int) (list []seckill.Sale, err error) {
	for goodsID := range int64(3) {
		sale, _ := h.Sale(ctx, goodsID)
		list = append(list, sale)
	}
	return list, nil
}

func (halves) IssuePaths(context.Context, int64, int64, time.Duration, []reservation.PathGrant) (time.Time, error) {
	return time.Time{}, errAway
}

func TestASaleWhoseRedisIsAwayDoesNotTakeTheListFromOthers(t *testing.T) {
	h := halves{away: map[int64]bool{1: true}}
	shop := catalog.NewCatalog(catalog.NewSaleReader(h, h), h, h)
	views, err := shop.Sales(t.Context(), 0, 3)
	require.NoError(t, err)
	for i, want := range []int64{5, 7, 5} {
		require.EqualValues(t, i, views[i].GoodsID)
		require.Equal(t, want, views[i].Available)
	}
	require.Equal(t, seckill.GateMissing, views[1].Gate, "as MySQL knows it")

	h.away[0], h.away[2] = true, true
	_, err = shop.Sales(t.Context(), 0, 3)
	require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err), "with all of Redis away nobody knows")
}
