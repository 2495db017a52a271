package bench

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

const (
	rebuildOrders = 60_000
	mostHeapMB    = 16 // a third of what these orders take in memory
)

// TestRebuild_MemoryDoesNotGrowWithOrders opens an epoch of a sale with many orders. The heap of
// this process, without garbage, may grow by what a few pages of orders take. The longest that
// another writer of the goods row waits is logged.
func TestRebuild_MemoryDoesNotGrowWithOrders(t *testing.T) {
	dsn := env.MariaDB(t).NewDatabase(t)
	store := must.Get(sqlstore.Open(t.Context(), dsn, ""))(t)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	sale := newDBSale(t, store, rawPool(t, dsn))
	sale.fill(t, rebuildOrders)
	client := connect.RedisOf(config.Redis{Addrs: []string{servers.Redis(t).Addr()}})
	t.Cleanup(func() { _ = client.Close() })
	opener := rebuild.Opener{
		Store: store, Redis: redisstore.New(client, redisstore.Options{}),
		PaymentTimeout: 15 * time.Minute,
	}
	token := must.Get(store.NextRebuildToken(t.Context(), sale.sale.GoodsID))(t).Number

	done := make(chan struct{})
	before := min(heapMB(), heapMB()) // the first collection keeps what pools hold
	var heap float64
	var wait time.Duration
	var both sync.WaitGroup
	both.Go(func() { heap = highest(done, heapMB) })
	both.Go(func() {
		wait = highest(done, func() time.Duration { return sale.touch(t) })
	})
	began := time.Now()
	opened, err := opener.Open(t.Context(), sale.sale.GoodsID, token)
	took := time.Since(began)
	close(done)
	both.Wait()
	require.NoError(t, err)
	view := must.Get(redisstore.New(client, redisstore.Options{}).View(t.Context(),
		opened.GoodsID))(t)
	require.EqualValues(t, rebuildOrders, view.Sold, "Redis has every order")
	t.Logf("%d orders: %s, the heap grew by %.1f MB, another writer of the row waited %s at most",
		rebuildOrders, took.Round(time.Millisecond), heap-before, wait.Round(time.Millisecond))
	require.Less(t, heap-before, float64(mostHeapMB))
}

// fill inserts orders of one unit by as many buyers, in one statement.
func (l *dbSale) fill(t testing.TB, orders int) {
	t.Helper()
	sn := l.keys.Issue(l.sale.GoodsID, "1", time.Now()).String()
	digits := len(sn) - 9 // those of one real number, then a serial
	insert := `INSERT INTO orders (goods_id, order_sn, buyer_id, epoch, quantity, amount, status,
		failure_reason, name, phone, created_at, pay_by)
		SELECT ?, CONCAT(?, LPAD(seq, 9, '0')), seq, ?, 1, 250, 'paid', '', 'tea', 'x', ?, ?
		FROM seq_1_to_1000000000 LIMIT ?`
	now := time.Now().UnixMilli()
	must.Get(l.pool.ExecContext(t.Context(), insert, l.sale.GoodsID, sn[:digits], l.sale.Epoch, now,
		now, orders))(t)
	must.Get(l.pool.ExecContext(t.Context(), `UPDATE sales SET stock = stock - ? WHERE goods_id = ?`,
		orders, l.sale.GoodsID))(t)
}

// touch writes the goods row as a cancellation does, and returns how long that took.
func (l *dbSale) touch(t testing.TB) time.Duration {
	began := time.Now()
	_, err := l.pool.ExecContext(t.Context(),
		`UPDATE sales SET version = version + 1 WHERE goods_id = ?`, l.sale.GoodsID)
	if err != nil {
		t.Errorf("write the goods row: %v", err)
	}
	return time.Since(began)
}

// heapMB is the heap of this process without garbage.
func heapMB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// highest measures until done is closed, and returns the highest value.
func highest[T float64 | time.Duration](done <-chan struct{}, measure func() T) (most T) {
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		most = max(most, measure())
		select {
		case <-done:
			tick.Stop()
			return most
		case <-tick.C:
		}
	}
}
