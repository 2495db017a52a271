package bench

import (
	"fmt"
	"regexp"
	"time"

	"github.com/stretchr/testify/require"
)

// redisBytes is what the data take with the tables that they are in, without connections and their buffers.
func (m meters) redisBytes() (bytes float64) {
	m.b.Helper()
	text, err := m.client.Do(m.b.Context(), "MEMORY", "STATS").Result()
	require.NoError(m.b, err)
	for _, name := range []string{"dataset.bytes", "overhead.hashtable.main", "overhead.hashtable.expires"} {
		for _, found := range regexp.MustCompile(regexp.QuoteMeta(name)+`[: ]+(\d+)`).FindAllStringSubmatch(fmt.Sprint(text), -1) {
			bytes += number(m.b, found[1])
		}
	}
	return bytes
}

// tablesQuery asks what an order's tables take, with their indexes.
const tablesQuery = `SELECT SUM(data_length + index_length) FROM information_schema.tables
	WHERE table_schema = DATABASE() AND table_name IN ('orders', 'buyer_holdings')`

func (m meters) tableBytes() (bytes float64) {
	m.b.Helper()
	pool := rawPool(m.b, m.DSN)
	defer pool.Close()
	_, err := pool.ExecContext(m.b.Context(), "ANALYZE TABLE orders, buyer_holdings")
	require.NoError(m.b, err)
	require.NoError(m.b, pool.QueryRowContext(m.b.Context(), tablesQuery).Scan(&bytes))
	return bytes
}

// lastCreated is when the last order of a goods was written.
func (m meters) lastCreated(goods string) time.Time {
	m.b.Helper()
	pool := rawPool(m.b, m.DSN)
	defer pool.Close()
	var millis int64
	require.NoError(m.b, pool.QueryRowContext(m.b.Context(), "SELECT MAX(created_at) FROM orders WHERE goods_id = ?", goods).Scan(&millis))
	return time.UnixMilli(millis)
}

// loneTrip is how long a call to Redis takes where nobody else calls, in seconds.
func (m meters) loneTrip() float64 {
	m.b.Helper()
	const calls = 200
	began := time.Now()
	for range calls {
		require.NoError(m.b, m.client.Ping(m.b.Context()).Err())
	}
	return time.Since(began).Seconds() / calls
}

// drained waits until nothing of a goods is pending, by a look that is none of the calls that are counted.
func (m meters) drained(goods string) {
	m.b.Helper()
	require.Eventually(m.b, func() bool {
		left, err := m.client.HGet(m.b.Context(), "sk:{"+goods+"}", "pend").Int()
		return err == nil && left == 0
	}, time.Minute, 10*time.Millisecond, "orders stay pending")
}
