package stats

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
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

// drafts is a store whose every sale is a draft of a merchant.
type drafts struct{ inventory.Store }

func (drafts) Sale(context.Context, int64) (seckill.Sale, error) {
	return seckill.Sale{MerchantID: "1", Status: seckill.Draft}, nil
}

func (drafts) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// TestRecent_CountsManyOrdersLessOften checks that a console that is open for a minute makes few
// counts if they are dear. It makes a new one each second if they are not. Statistics always
// counts.
func TestRecent_CountsManyOrdersLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts, takes time.Duration
		count := func(context.Context, int64) (map[order.Status]Count, error) {
			time.Sleep(takes)
			counts++
			return map[order.Status]Count{order.Paid: {Orders: int64(counts)}}, nil
		}
		s := NewService(&inventory.SaleService{Stores: inventory.Stores{Store: drafts{}}}, nil, nil,
			count, nil)
		by := seckill.Actor{ID: "1", Role: seckill.Merchant}
		minute := func() time.Duration {
			before, second := counts, time.NewTicker(time.Second)
			defer second.Stop()
			for range 60 {
				must.Get(s.Recent(t.Context(), by, 7))(t)
				<-second.C
			}
			return counts - before
		}
		takes = 5 * time.Millisecond
		require.EqualValues(t, 60, minute())
		takes = 300 * time.Millisecond
		require.InDelta(t, 20, int(minute()), 2)
		takes = 3 * time.Second
		require.InDelta(t, 3, int(minute()), 1)
		time.Sleep(10 * time.Second)
		before := counts
		f := must.Get(s.Statistics(t.Context(), by, 7))(t)
		require.EqualValues(t, before+1, f.Orders[order.Paid].Orders)
	})
}
