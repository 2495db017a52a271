package sqlstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestSaleSlots_WaitEnds takes all slots of a sale. A further caller waits for slotWait, or until
// its request ends, and another sale's caller does not wait.
func TestSaleSlots_WaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := saleSlots{sales: make(map[int64]*saleSlot)}
		acquire := func(ctx context.Context, goodsID int64) (func(), time.Duration, error) {
			began := time.Now()
			release, err := slots.acquire(ctx, goodsID)
			return release, time.Since(began), err
		}
		var releases []func()
		for range slotsOfSale {
			releases = append(releases, must.Get(slots.acquire(t.Context(), 1))(t))
		}
		_, waited, err := acquire(t.Context(), 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, slotWait, waited)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, waited, err = acquire(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, waited)

		time.AfterFunc(2*time.Second, releases[0])
		release, waited, err := acquire(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, waited)

		other, waited, err := acquire(t.Context(), 2)
		require.NoError(t, err)
		require.Zero(t, waited)
		for _, release := range append(releases[1:], release, other) {
			release()
		}
		require.Empty(t, slots.sales, "nobody has a slot")
	})
}
