package order_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
)

// elsewhere is the database on a host whose clock is ahead of this one's.
type elsewhere struct {
	*sqlstore.Store
	ahead time.Duration
}

func (e elsewhere) Now(context.Context) (time.Time, error) { return time.Now().Add(e.ahead), nil }

// TestSales_HaveTheDatabasesTime changes sales by an API whose clock is 25 hours ahead of the
// database's. Sales have the database's time, with which their orders and events are dated, and an
// Idempotency-Key is valid for its 24 hours.
func TestSales_HaveTheDatabasesTime(t *testing.T) {
	h, ctx := newFixture(t), t.Context()
	database := elsewhere{h.store, -25 * time.Hour}
	service := *h.Sales
	service.Store, service.Opener.Store = database, database
	key := salechange.IdempotencyKey{ActorID: operator.ID, Key: "k"}
	yesterday := time.Now().Add(-24 * time.Hour)
	create := func() seckill.Sale {
		sale, err := service.Create(ctx, operator, seckill.NewSale{
			Title: "A phone", Price: 1, Stock: 1, PerBuyerLimit: 1, StartAt: time.Now(),
			EndAt: time.Now().Add(time.Hour), Rate: seckill.DefaultRate(),
		}, salechange.IdempotencyKey{})
		require.NoError(t, err)
		require.True(t, sale.CreatedAt.Before(yesterday), sale.CreatedAt)
		return sale
	}
	audited := func(goodsID int64) {
		f := salechange.AuditFilter{GoodsID: goodsID}
		entries := must.Get(h.store.AuditTrail(ctx, f, "", 10))(t)
		require.NotEmpty(t, entries)
		for _, entry := range entries {
			require.True(t, entry.At.Before(yesterday), entry)
		}
	}
	sale := create()
	must.Get(service.Expose(ctx, operator, sale.GoodsID))(t)
	closed := must.Get(service.Close(ctx, operator, sale.GoodsID))(t)
	require.True(t, closed.UpdatedAt.Before(yesterday), closed.UpdatedAt)
	audited(sale.GoodsID)

	sale = create()
	require.NoError(t, service.Delete(ctx, operator, sale.GoodsID, key))
	audited(sale.GoodsID)
	require.NoError(t, service.Delete(ctx, operator, sale.GoodsID, key), "a repeated key")
}

// TestTimes_LaterCountsTheTimeSinceTheReading sleeps between a reading and its use, which counts
// once.
func TestTimes_LaterCountsTheTimeSinceTheReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := elsewhere{ahead: time.Hour}
		read := must.Get(order.ReadTimes(t.Context(), clock, 15*time.Minute))(t)
		time.Sleep(20 * time.Minute)
		later := read.Later()
		require.Equal(t, must.Get(clock.Now(t.Context()))(t), later.Now)
		require.Equal(t, later.Now.Add(15*time.Minute), later.PayBy)
		time.Sleep(time.Minute)
		require.Equal(t, later, later.Later())
	})
}

// TestWorkers_ClockAnHourBehindStopsNothing runs the workers of a consumer whose clock is an hour
// behind the database's: they release moves, finish cuts, expire orders and refund payments.
func TestWorkers_ClockAnHourBehindStopsNothing(t *testing.T) {
	h := newFixture(t)
	store := elsewhere{h.store, time.Hour}
	now := must.Get(store.Now(t.Context()))(t)
	sale := h.exposeSale(9, 2)
	change := func(delta int64, at time.Time) {
		must.Get(h.store.Change(t.Context(), sale.GoodsID, salechange.Change{StockDelta: delta},
			salechange.IdempotencyKey{}, at))(t)
	}
	change(3, now)
	change(-2, now.Add(-time.Minute))
	line := h.numbered(sale.GoodsID, sale.Epoch, 7)
	b := orderwriter.Batch{
		GoodsID: sale.GoodsID, Lines: []reservation.OrderLine{line},
		Times: order.Times{Now: now.Add(-time.Minute), PayBy: now},
	}
	must.Get(h.store.WriteBatch(t.Context(), b))(t)
	p := payment.Payment{
		ID: "p-1", GoodsID: sale.GoodsID, OrderSn: line.OrderSn, Amount: 250 * line.Quantity,
	}
	receipts := must.Get(h.store.Receive(t.Context(), sale.GoodsID, []payment.Payment{p}, now))(t)
	require.Equal(t, payment.Refunding, receipts[0].State, "paid when it was due to expire")

	stores := inventory.Stores{Store: store, Redis: h.redis, Log: h.parts.Log}
	releaser := &inventory.StockReleaser{Stores: stores}
	sales := func() []seckill.Sale { return []seckill.Sale{sale} }
	h.run(releaser)
	h.run(&inventory.ChangeSyncer{Stores: stores, Sales: sales})
	h.run(&payment.Expirer{Sales: sales, Store: store, Releaser: releaser, Log: h.parts.Log})
	h.run(&payment.Refunder{Store: store, Provider: paymentprovider.Test{}, Log: h.parts.Log})
	require.Eventually(t, func() bool {
		after, err := h.store.Sale(t.Context(), sale.GoodsID)
		unreleased, _, listErr := h.store.Unreleased(t.Context(), sale.GoodsID)
		due, dueErr := h.store.DueRefunds(t.Context(), now.Add(time.Hour), 10)
		return err == nil && listErr == nil && dueErr == nil && after.Total == 10 &&
			unreleased == 0 && len(due) == 0
	}, within, tick)
	require.Equal(t, order.Expired, h.find(7, line.OrderSn).Status)
}
