package e2e

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/rush"
	"flashsale.dev/seckill/internal/testing/installation"
)

// TestASplitSale is a sale whose stock is in four buckets: nobody outside may notice, but by a 503 now and then.
func TestASplitSale(t *testing.T) {
	r := installation.Start(t, suite, installation.Options{APIs: 2, Consumers: 2})
	split := func(t *testing.T, units, limit int64) string {
		t.Helper()
		return r.PutUpSplit(t, units, limit, 4, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
	}

	t.Run("everybody comes", func(t *testing.T) {
		goods := split(t, 400, 1)
		stop := watch(t, r, goods, 400)
		got := rushFor(t, r, goods, rush.Plan{Buyers: 1200, AtOnce: 200, Stubborn: true})
		stop()
		got.gone(t, 400, 400, 400)
		require.EqualValues(t, 1, got.facts.MostHeld)
		require.Equal(t, 800, got.report.Count(rush.SoldOut))
		sameBucket(t, r, goods)
	})

	// The worst skew there is: three buckets of units, and nobody of theirs comes.
	t.Run("only buyers of one bucket come", func(t *testing.T) {
		goods := split(t, 202, 1)
		stop := watch(t, r, goods, 202)
		got := rushFor(t, r, goods, rush.Plan{Buyers: 202, AtOnce: 202, Stubborn: true, ID: installation.Neighbours(t, goods, 2, 1)})
		stop()
		got.gone(t, 202, 202, 202)
		require.Equal(t, 202, got.report.Count(rush.Won), "units stayed where nobody could get at them")
		t.Logf("the last of them had its unit after %s", got.report.Quantile(1, rush.Won, rush.Bought))
		late := rushFor(t, r, goods, rush.Plan{Buyers: 1, AtOnce: 1, ID: installation.Neighbours(t, goods, 2, 1<<30)})
		require.Equal(t, 1, late.report.Count(rush.SoldOut), "%+v", late.report.Told)
	})

	// Each unit but the first is looked for in another bucket, when there is one alone.
	t.Run("the last units are found one by one", func(t *testing.T) {
		goods := split(t, 4, 4)
		for i := range int64(4) {
			got := rushFor(t, r, goods, rush.Plan{Buyers: 1, AtOnce: 1, FirstID: 77, Patience: foundWithin})
			require.Equal(t, 1, got.report.Count(rush.Won), "unit %d: %+v", i+1, got.report.Told)
			t.Logf("unit %d was sold after %s", i+1, got.report.Told[0].Bought)
		}
		require.Equal(t, installation.Facts{Total: 4, Orders: 4, Units: 4, Buyers: 1, Held: 4, MostHeld: 4}, r.Facts(t, goods))
	})

	t.Run("greed is held to the limit", func(t *testing.T) {
		goods := split(t, 150, 3)
		got := rushFor(t, r, goods, rush.Plan{Buyers: 50, AtOnce: 25, Asks: 5, Stubborn: true})
		got.gone(t, 150, 150, 50)
		require.EqualValues(t, 3, got.facts.MostHeld)
		sameBucket(t, r, goods)
	})
}

// foundWithin is how long a buyer goes on for a unit that is in another bucket: three times what docs/how-to/scale.md promises, for
// a machine that has much else to do.
const foundWithin = 15 * time.Second

// sameBucket wants all orders of a buyer to be in the bucket that is the buyer's.
func sameBucket(t *testing.T, r *installation.Rig, goods string) {
	t.Helper()
	for _, o := range r.OrderRows(t, goods) {
		require.Equal(t, installation.BucketOf(t, goods, o.BuyerID), strconv.FormatInt(o.GoodsID, 10), "buyer %d, order %s", o.BuyerID, o.OrderSn)
	}
}

// watch reads a sale's ledger again and again until it is told to stop: whatever is on its way between the buckets, every
// reading must add up to all units.
func watch(t *testing.T, r *installation.Rig, goods string, units int64) (stop func()) {
	t.Helper()
	merchant, end, ended, ctx := r.Merchant(t), make(chan struct{}), make(chan struct{}), context.WithoutCancel(t.Context())
	go func() {
		defer close(ended)
		read := 0
		for tick := time.NewTicker(10 * time.Millisecond); ; read++ {
			l, err := merchant.Ledger(ctx, goods)
			if assert.NoError(t, err) {
				assert.Equal(t, []int64{units, units}, []int64{l.Total, l.Available + l.Pending + l.Sold}, "%+v", l)
				assert.True(t, l.Balanced, "%+v", l)
			}
			select {
			case <-tick.C:
			case <-end:
				t.Logf("%d readings of the ledger", read)
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(end); <-ended })
	t.Cleanup(stop)
	return stop
}
