package order_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// onRedis replaces the fixture's embedded Redis by a server of its own.
func (h *fixture) onRedis() {
	h.t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: []string{servers.Redis(h.t).Addr()},
	})
	h.t.Cleanup(func() { _ = client.Close() })
	h.redis = redisstore.New(client, redisstore.Options{})
	h.parts.Redis, h.parts.RedisStore = client, h.redis
	h.Services = app.NewServices(h.parts, settings())
}

// onMariaDB replaces the fixture's SQLite by an empty database of the shared server.
func (h *fixture) onMariaDB() {
	h.t.Helper()
	h.driver, h.file = "mysql", env.MariaDB(h.t).NewDatabase(h.t)
	h.store = must.Get(sqlstore.Open(h.t.Context(), h.file, ""))(h.t)
	h.t.Cleanup(func() { _ = h.store.Close() })
	require.NoError(h.t, h.store.Migrate(h.t.Context()))
	h.parts.Store = h.store
	h.Services = app.NewServices(h.parts, settings())
}

// copySale makes copies of a sale in MySQL and in Redis, with the next goods ids.
func (h *fixture) copySale(goods int64, copies int) {
	h.t.Helper()
	db := must.Get(sql.Open("sqlite", h.file))(h.t)
	defer db.Close()
	tx := must.Get(db.BeginTx(h.t.Context(), nil))(h.t)
	exec := func(statement string, args ...any) {
		must.Get(tx.ExecContext(h.t.Context(), statement, args...))(h.t)
	}
	exec("CREATE TEMPORARY TABLE copy AS SELECT * FROM sales WHERE goods_id = ?", goods)
	pipe := h.parts.Redis.Pipeline()
	for i := range copies {
		exec("UPDATE copy SET goods_id = goods_id + 1")
		exec("INSERT INTO sales SELECT * FROM copy")
		from, to := fmt.Sprintf("sk:{%d}", goods), fmt.Sprintf("sk:{%d}", goods+int64(i)+1)
		pipe.Copy(h.t.Context(), from, to, 0, false)
	}
	require.NoError(h.t, tx.Commit())
	must.Get(pipe.Exec(h.t.Context()))(h.t)
}

// TestRest_LostSaleIsRebuiltAfterARequest checks that 2,000 sales rest. The purchase that meets a
// lost one has it rebuilt, also on a node that knows the sale's epoch and asks the script.
func TestRest_LostSaleIsRebuiltAfterARequest(t *testing.T) {
	h := newFixture(t)
	h.onRedis()
	sale := h.exposeSale(10, 2)
	stop := h.runWorkers(settings())
	sn := h.buy(sale.GoodsID, 7, 1)
	h.becomes(7, sn, order.Created)
	must.Get(h.Payments.Pay(t.Context(), buyer(7), sn))(t)
	h.settles(sale.GoodsID, 9, 1)
	stop()
	h.copySale(sale.GoodsID, 1999)
	list := &livesales.List{Store: h.store, Redis: h.redis, Log: h.parts.Log}
	require.NoError(t, list.Refresh(t.Context()))
	require.Equal(t, 2000, len(list.Sales()))
	require.Eventually(t, func() bool {
		list.Check(t.Context())
		return len(list.Sales()) == 0
	}, 5*time.Minute, 50*time.Millisecond)

	request := h.request(sale.GoodsID, 8, 1)
	keys := h.parts.Redis.Keys(t.Context(), fmt.Sprintf("sk:{%d}*", sale.GoodsID))
	must.Get(h.parts.Redis.Del(t.Context(), must.Get(keys.Result())(t)...).Result())(t)
	require.Eventually(t, func() bool {
		_, refused := h.Purchases.Place(t.Context(), request)
		ended, err := h.redis.EndedRests(t.Context())
		return apierror.ReasonOf(refused) == apierror.Unavailable && err == nil &&
			len(ended) == 1 && ended[0] == sale.GoodsID
	}, within, tick)

	h.runAllBut(func(w app.Worker) bool { _, is := w.(*orderwriter.Consumer); return !is })
	h.run(list)
	h.run(&rebuild.Worker{Live: list, Rebuilder: h.rebuilder(h.store)})
	h.place(request)
	require.EqualValues(t, 2, h.view(sale.GoodsID).Epoch)
}
