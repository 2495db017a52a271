package installation

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// OrderRow is one order in MySQL; .
type OrderRow struct {
	OrderSn, Status   string
	GoodsID           int64
	BuyerID, Quantity int64
}

// OrderRows reads all orders of a goods, whatever their status.
func (r *Installation) OrderRows(t testing.TB, goods string) []OrderRow {
	t.Helper()
	var list []OrderRow
	r.each(t, func(rows *sql.Rows) error {
		var o OrderRow
		err := rows.Scan(&o.OrderSn, &o.Status, &o.GoodsID, &o.BuyerID, &o.Quantity)
		list = append(list, o)
		return err
	}, `SELECT order_sn, status, goods_id, buyer_id, quantity FROM orders WHERE goods_id = ?`, goods)
	return list
}

// Held reads what MySQL says each buyer holds.
func (r *Installation) Held(t testing.TB, goods string) map[int64]int64 {
	t.Helper()
	held := make(map[int64]int64)
	r.each(t, func(rows *sql.Rows) error {
		var buyer, units int64
		err := rows.Scan(&buyer, &units)
		held[buyer] += units
		return err
	}, `SELECT buyer_id, held FROM buyer_holdings WHERE goods_id = ?`, goods)
	return held
}

// DeadLetters lists the order numbers of the dead letters in MySQL, of every goods and of none.
func (r *Installation) DeadLetters(t testing.TB) []string {
	t.Helper()
	var sns []string
	r.each(t, func(rows *sql.Rows) error {
		var sn string
		err := rows.Scan(&sn)
		sns = append(sns, sn)
		return err
	}, `SELECT order_sn FROM dead_letters`)
	return sns
}

func (r *Installation) each(t testing.TB, scan func(*sql.Rows) error, query string, args ...any) {
	t.Helper()
	db, err := sql.Open("mysql", r.DSN)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), query, args...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		require.NoError(t, scan(rows))
	}
	require.NoError(t, rows.Err())
}

// RedisClient opens a client of the installation's Redis: of the cluster, or of whichever is master where it has Sentinels. It is for tests that
// read or inject faults themselves.
func (r *Installation) RedisClient(t testing.TB) redis.UniversalClient {
	t.Helper()
	opts := redis.Options{Addr: r.Redis.Addr(), MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second}
	var c redis.UniversalClient
	switch {
	case r.Cluster != nil:
		c = r.clusterClient()
	case len(r.Sentinels) > 0:
		c = redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: r.masterName(), SentinelAddrs: r.sentinelAddrs(),
			MaxRetries: opts.MaxRetries, DialTimeout: opts.DialTimeout, ReadTimeout: opts.ReadTimeout,
		})
	default:
		c = redis.NewClient(&opts)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// RedisFacts is what Redis keeps of a goods, read key by key: sure only while nothing moves.
type RedisFacts struct {
	Pending, Outbox int64
	Oldest          time.Duration // age of the oldest that may be pending; 0 where nothing is
	Held            map[int64]int64
}

// RedisFacts reads them.
func (r *Installation) RedisFacts(t testing.TB, c redis.UniversalClient, goods string) (RedisFacts, error) {
	t.Helper()
	f, err := redisFacts(t.Context(), c, goods)
	if err != nil {
		return RedisFacts{}, fmt.Errorf("read redis: %w", err)
	}
	return f, nil
}

func redisFacts(ctx context.Context, c redis.UniversalClient, goods string) (RedisFacts, error) {
	key := SaleKey(goods)
	pipe := c.Pipeline()
	pending, outbox, buyers := pipe.HLen(ctx, key+":pending"), pipe.XLen(ctx, key+":outbox"), pipe.HGetAll(ctx, key+":buyers")
	since := pipe.HGet(ctx, key, "since")
	if _, err := pipe.Exec(ctx); err != nil {
		return RedisFacts{}, err
	}
	f := RedisFacts{Pending: pending.Val(), Outbox: outbox.Val(), Held: make(map[int64]int64)}
	if ms, err := since.Int64(); err == nil && f.Pending > 0 {
		f.Oldest = time.Since(time.UnixMilli(ms)) // Redis' clock and this one are the same machine's
	}
	for buyer, text := range buyers.Val() {
		id, _ := strconv.ParseInt(buyer, 10, 64)
		units, _, _ := strings.Cut(text, " ")
		f.Held[id], _ = strconv.ParseInt(units, 10, 64)
	}
	return f, nil
}

// Queues counts the messages in the installation's queues, handed out or not, and those among the dead.
func (r *Installation) Queues(t testing.TB) (orders, dead int, err error) {
	t.Helper()
	var queues []struct {
		Name     string `json:"name"`
		Messages int    `json:"messages"`
	}
	err = r.management(t, http.MethodGet, "/api/queues/"+r.vhost(t), &queues)
	for _, q := range queues {
		if strings.HasPrefix(q.Name, "seckill.dead") {
			dead += q.Messages
		} else if strings.HasPrefix(q.Name, "seckill.") {
			orders += q.Messages
		}
	}
	return orders, dead, err
}

// MakeVHost makes the installation's vhost again, as whoever sets up a broker that lost its disk would.
func (r *Installation) MakeVHost(t testing.TB) {
	t.Helper()
	require.NoError(t, r.management(t, http.MethodPut, "/api/vhosts/"+r.vhost(t), nil))
}

func (r *Installation) vhost(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(r.AMQP)
	require.NoError(t, err)
	return strings.TrimPrefix(u.Path, "/")
}

func (r *Installation) management(t testing.TB, method, path string, out any) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.rabbitUp().ManagementURL()+path, http.NoBody)
	require.NoError(t, err)
	req.Close = true
	req.SetBasicAuth("guest", "guest")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
