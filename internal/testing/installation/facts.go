package installation

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// Facts is MySQL's state of one sale. Tests read it directly.
type Facts struct {
	Stock, Total          int64 // units, of the goods row
	Orders, Units, Buyers int64 // active orders, their units, and the buyers who have one
	Held, MostHeld        int64 // units in buyer_holdings: of all buyers, and of the one with most
	Failed, Dead          int64 // failed orders, and dead letters
	Unreleased, OpenCuts  int64 // stock moves and stock cuts that Redis has not applied
}

// Facts reads a sale's facts.
func (r *Installation) Facts(t testing.TB, goods string) (f Facts) {
	const holds = "FROM orders WHERE goods_id = s.goods_id AND status IN ('created', 'paid')"
	const held = "FROM (SELECT SUM(held) AS held FROM buyer_holdings WHERE goods_id = ? " +
		"GROUP BY buyer_id) AS buyers"
	row := r.db.QueryRowContext(t.Context(), `SELECT s.stock, s.total, (SELECT COUNT(*) `+holds+`) AS orders,
		(SELECT COALESCE(SUM(quantity), 0) `+holds+`) AS units,
		(SELECT COUNT(DISTINCT buyer_id) `+holds+`) AS buyers,
		(SELECT COALESCE(SUM(held), 0) `+held+`) AS held,
		(SELECT COALESCE(MAX(held), 0) `+held+`) AS most_held,
		(SELECT COUNT(*) FROM orders WHERE goods_id = s.goods_id AND status = 'failed') AS failed,
		(SELECT COUNT(*) FROM dead_letters WHERE goods_id = s.goods_id) AS dead,
		(SELECT COUNT(*) FROM stock_moves WHERE goods_id = s.goods_id AND given_at IS NULL)
			AS unreleased,
		(SELECT COUNT(*) FROM stock_cuts WHERE goods_id = s.goods_id AND state = 'open') AS open_cuts
		FROM sales s WHERE s.goods_id = ?`, goods, goods, goods)
	require.NoError(t, row.Scan(&f.Stock, &f.Total, &f.Orders, &f.Units, &f.Buyers, &f.Held,
		&f.MostHeld, &f.Failed, &f.Dead, &f.Unreleased, &f.OpenCuts))
	return f
}

// OrderRow is one order in MySQL.
type OrderRow struct {
	OrderSn, Status            string
	GoodsID, BuyerID, Quantity int64
}

// OrderRows reads all orders of a goods with any status.
func (r *Installation) OrderRows(t testing.TB, goods string) (orders []OrderRow) {
	r.each(t, func(rows *sql.Rows) error {
		var o OrderRow
		err := rows.Scan(&o.OrderSn, &o.Status, &o.GoodsID, &o.BuyerID, &o.Quantity)
		orders = append(orders, o)
		return err
	}, `SELECT order_sn, status, goods_id, buyer_id, quantity FROM orders WHERE goods_id = ?`,
		goods)
	return orders
}

// OrderSns returns the numbers of a goods' active orders.
func (r *Installation) OrderSns(t testing.TB, goods string) map[string]bool {
	sns := make(map[string]bool)
	for _, o := range r.OrderRows(t, goods) {
		if o.Status == "created" || o.Status == "paid" {
			sns[o.OrderSn] = true
		}
	}
	return sns
}

// Held returns the units that each buyer holds according to MySQL.
func (r *Installation) Held(t testing.TB, goods string) map[int64]int64 {
	held := make(map[int64]int64)
	r.each(t, func(rows *sql.Rows) error {
		var buyer, units int64
		err := rows.Scan(&buyer, &units)
		held[buyer] += units
		return err
	}, `SELECT buyer_id, held FROM buyer_holdings WHERE goods_id = ?`, goods)
	return held
}

// DeadLetters returns the order numbers of the dead letters in MySQL, for every goods and for
// unknown goods.
func (r *Installation) DeadLetters(t testing.TB) (sns []string) {
	r.each(t, func(rows *sql.Rows) error {
		sns = append(sns, "")
		return rows.Scan(&sns[len(sns)-1])
	}, `SELECT order_sn FROM dead_letters`)
	return sns
}

// each visits the rows of a query.
func (r *Installation) each(
	t testing.TB, visit func(*sql.Rows) error, query string, args ...any,
) {
	rows := must.Get(r.db.QueryContext(t.Context(), query, args...))(t)
	defer rows.Close()
	for rows.Next() {
		require.NoError(t, visit(rows))
	}
	require.NoError(t, rows.Err())
}

// TableRows counts the rows of each table.
func (r *Installation) TableRows(t testing.TB) map[string]int64 {
	var tables []string
	r.each(t, func(rows *sql.Rows) error {
		tables = append(tables, "")
		return rows.Scan(&tables[len(tables)-1])
	}, `SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()`)
	count := make(map[string]int64, len(tables))
	for _, table := range tables {
		var n int64
		//nolint:gosec // the server itself names its tables
		row := r.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table)
		require.NoError(t, row.Scan(&n))
		count[table] = n
	}
	return count
}

// ExecSQL runs a statement as the administrator, for at most 30 s.
func (r *Installation) ExecSQL(t testing.TB, statement string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	must.Get(r.db.ExecContext(ctx, statement))(t, statement)
}

// RedisFacts is Redis' state of a goods. It is consistent only without concurrent changes, because
// the test reads it key by key.
type RedisFacts struct {
	Pending int64           // orders
	Outbox  int64           // entries, each with the orders of one call
	Oldest  time.Duration   // age of the backlog (see seckill.View); 0 if no order is pending
	Held    map[int64]int64 // units by buyer
}

// RedisFacts reads the facts of a goods.
func (r *Installation) RedisFacts(
	t testing.TB, c redis.UniversalClient, goods string,
) (RedisFacts, error) {
	key, pipe, ctx := SaleKey(goods), c.Pipeline(), t.Context()
	pending, outbox := pipe.HLen(ctx, key+":pending"), pipe.XLen(ctx, key+":outbox")
	buyers, since := pipe.HGetAll(ctx, key+":buyers"), pipe.HGet(ctx, key, "since")
	if _, err := pipe.Exec(ctx); err != nil {
		return RedisFacts{}, fmt.Errorf("read redis: %w", err)
	}
	f := RedisFacts{Pending: pending.Val(), Outbox: outbox.Val(), Held: make(map[int64]int64)}
	if ms, err := since.Int64(); err == nil && f.Pending > 0 {
		// Redis runs on the same machine, so both clocks agree.
		f.Oldest = time.Since(time.UnixMilli(ms))
	}
	for buyer, text := range buyers.Val() {
		id, _ := strconv.ParseInt(buyer, 10, 64)
		units, _, _ := strings.Cut(text, " ")
		f.Held[id], _ = strconv.ParseInt(units, 10, 64)
	}
	return f, nil
}

// Queues counts the messages in the installation's queues, unacknowledged ones included. It also
// counts the messages in the dead letter queue. It asks the node that leads each queue, whose
// numbers are up to five seconds old. Those of the HTTP API may be wrong for longer: after a
// partition RabbitMQ 4.3 keeps the numbers of a former leader.
func (r *Installation) Queues(t testing.TB) (orders, dead int, err error) {
	counts, err := r.rabbitUp().Ctl(t.Context(), "eval", fmt.Sprintf(`
		Count = fun(Dead) -> lists:sum([begin
			{_, Leader} = amqqueue:get_pid(Queue),
			[{messages, N}] = rpc:call(Leader, rabbit_amqqueue, info, [Queue, [messages]]),
			N
		end || Queue <- rabbit_amqqueue:list(<<"%s">>),
			{resource, _, queue, <<"seckill.", Name/binary>>} <- [amqqueue:get_name(Queue)],
			(Name =:= <<"dead">>) =:= Dead]) end,
		{Count(false), Count(true)}.`, r.vhost(t)))
	if err == nil {
		_, err = fmt.Sscanf(counts, "{%d,%d}", &orders, &dead)
	}
	return orders, dead, err
}
