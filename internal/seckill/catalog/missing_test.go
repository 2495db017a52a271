package catalog_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/testing/must"
)

// drafts is a Redis without sales and a MySQL with one draft. The draft may become exposed.
type drafts struct {
	catalog.SaleStore
	exposed        atomic.Bool
	views, queries atomic.Int64
	restsEnded     atomic.Int64
	reading        func() // runs between the read of the row and its answer
}

func (d *drafts) View(context.Context, int64) (seckill.View, error) {
	d.views.Add(1)
	return seckill.View{}, seckill.ErrNotLoaded
}

func (d *drafts) Sale(_ context.Context, goodsID int64) (seckill.Sale, error) {
	d.queries.Add(1)
	sale, err := seckill.Sale{GoodsID: goodsID, Status: seckill.Draft}, error(nil)
	switch {
	case goodsID != 42:
		err = seckill.ErrNoSuchGoods
	case d.exposed.Load():
		sale.Status = seckill.Exposed
	}
	d.reading()
	return sale, err
}

// Now is an hour behind this host's clock.
func (d *drafts) Now(context.Context) (time.Time, error) {
	return time.Now().Add(-time.Hour), nil
}

func (d *drafts) EndRest(context.Context, int64) error {
	d.restsEnded.Add(1)
	return nil
}

// TestSaleReader_EndsRestOfLostSale checks that a request that meets a lost sale ends its rest,
// once a second, and that no request waits for it.
func TestSaleReader_EndsRestOfLostSale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drafts{reading: func() {}}
		reader := catalog.NewSaleReader(d, d)
		_, err := reader.Sale(t.Context(), 42)
		require.Error(t, err, "a draft is not lost")
		d.exposed.Store(true)
		reader.Exposed(42)
		for range 10 {
			must.Get(reader.Sale(t.Context(), 42))(t)
		}
		synctest.Wait()
		require.EqualValues(t, 1, d.restsEnded.Load())
		time.Sleep(catalog.MissingTTL)
		must.Get(reader.Sale(t.Context(), 42))(t)
		synctest.Wait()
		require.EqualValues(t, 2, d.restsEnded.Load())
	})
}

// TestSaleReader_RemembersMissingSales checks that an unknown id and a draft cost one script and
// one query in MissingTTL, however often they are asked for.
func TestSaleReader_RemembersMissingSales(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drafts{reading: func() {}}
		reader := catalog.NewSaleReader(d, d)
		ask := func(goodsID int64) apierror.Reason {
			_, err := reader.Sale(t.Context(), goodsID)
			return apierror.ReasonOf(err)
		}
		for _, id := range []int64{42, 43} {
			d.views.Store(0)
			d.queries.Store(0)
			for range 1000 {
				require.Equal(t, apierror.NotFound, ask(id))
			}
			require.EqualValues(t, []int64{1, 1}, []int64{d.views.Load(), d.queries.Load()})
		}
		d.exposed.Store(true) // by another node
		time.Sleep(catalog.MissingTTL - time.Nanosecond)
		require.Equal(t, apierror.NotFound, ask(42))
		time.Sleep(time.Nanosecond)
		require.Empty(t, ask(42), "visible after MissingTTL")
	})
}

// TestSaleReader_OwnExposureIsVisibleAtOnce checks that a sale that this node exposes is visible.
// It is also visible after a read that began before the exposure and ended after it.
func TestSaleReader_OwnExposureIsVisibleAtOnce(t *testing.T) {
	for name, during := range map[string]bool{"during a read": true, "after a read": false} {
		t.Run(name, func(t *testing.T) {
			d := &drafts{}
			reader := catalog.NewSaleReader(d, d)
			expose := func() {
				d.exposed.Store(true)
				reader.Exposed(42)
			}
			d.reading = func() {
				if during && !d.exposed.Load() {
					expose()
				}
			}
			_, err := reader.Sale(t.Context(), 42)
			require.Equal(t, apierror.NotFound, apierror.ReasonOf(err))
			if !during {
				expose()
			}
			_, err = reader.Sale(t.Context(), 42)
			require.NoError(t, err)
		})
	}
}

// TestSaleReader_BoundsTheMissingSales asks for more unknown ids than the reader remembers. It has
// forgotten the first.
func TestSaleReader_BoundsTheMissingSales(t *testing.T) {
	d := &drafts{reading: func() {}}
	reader := catalog.NewSaleReader(d, d)
	for id := int64(100); id <= 10_100; id++ {
		_, err := reader.Sale(t.Context(), id)
		require.Equal(t, apierror.NotFound, apierror.ReasonOf(err))
	}
	before := d.queries.Load()
	_, _ = reader.Sale(t.Context(), 100)
	require.Equal(t, before+1, d.queries.Load())
}

// TestSaleReader_LostSaleHasTheDatabasesTime reads a sale that Redis has lost, on a host whose
// clock is an hour ahead of the database's. A buyer who reads "ended" gives up.
func TestSaleReader_LostSaleHasTheDatabasesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drafts{reading: func() {}}
		d.exposed.Store(true)
		v := must.Get(catalog.NewSaleReader(d, d).Sale(t.Context(), 42))(t)
		require.Equal(t, time.Now().Add(-time.Hour), v.Now)
	})
}
