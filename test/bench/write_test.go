package bench

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
)

// BenchmarkWriteBatch measures one writer of one goods with durable commits, by the batch's size,
// beside the same rows without GORM and without a check. The processor time is that of this process
// (as the consumer) and of MariaDB.
func BenchmarkWriteBatch(b *testing.B) {
	server := env.MariaDB(b)
	dsn := server.NewDatabase(b)
	store := must.Get(sqlstore.Open(b.Context(), dsn, ""))(b)
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	require.NoError(b, store.Migrate(b.Context()))
	pool := rawPool(b, dsn)
	cpu := processes{consumerPart: {os.Getpid()}, sqlPart: {server.Pid()}}
	for _, size := range []int{1, 10, 100, 200, 500} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ours, raw := newDBSale(b, store, pool), newDBSale(b, store, pool)
			compare(b, fmt.Sprintf("batch write, batches of %d", size), "orders",
				contender{"ours", func() measurement {
					return ours.writes(b, size, ours.writeBatch, cpu)
				}},
				contender{"multi-row inserts and one CAS", func() measurement {
					return raw.writes(b, size, raw.writeRaw, cpu)
				}})
		})
	}
}

// rawPool uses the database without GORM, with one round trip a statement, as our store does.
func rawPool(b testing.TB, dsn string) *sql.DB {
	b.Helper()
	cfg := must.Get(mysql.ParseDSN(dsn))(b)
	cfg.InterpolateParams = true
	pool := sql.OpenDB(must.Get(mysql.NewConnector(cfg))(b))
	b.Cleanup(func() { _ = pool.Close() })
	return pool
}

// writes writes some batches of a size again and again.
func (l *dbSale) writes(
	b *testing.B, size int, write func(context.Context, orderwriter.Batch) error,
	cpu processes,
) measurement {
	b.Helper()
	prepare := func() []orderwriter.Batch {
		batches := make([]orderwriter.Batch, max(2, 200/size))
		for i := range batches {
			batches[i] = l.batch(b, size)
		}
		return batches
	}
	return repeat(prepare, func(batches []orderwriter.Batch) int {
		for _, batch := range batches {
			require.NoError(b, write(b.Context(), batch))
		}
		return size * len(batches)
	}, cpu)
}

// dbSale is one sale in the database.
type dbSale struct {
	store *sqlstore.Store
	pool  *sql.DB
	sale  seckill.Sale
	keys  *ordersn.Keys
}

func newDBSale(b testing.TB, store *sqlstore.Store, pool *sql.DB) *dbSale {
	b.Helper()
	now := time.Now().UTC()
	draft := seckill.NewSale{
		Title: "tea", Price: 250, Stock: seckill.MaxStock, PerBuyerLimit: 1, StartAt: now,
		EndAt: now.Add(time.Hour), Rate: seckill.DefaultRate(),
	}.Draft("1", now)
	must.Get(store.CreateSale(b.Context(), draft, salechange.IdempotencyKey{}))(b)
	sale := must.Get(store.BeginEpoch(b.Context(), draft.GoodsID, rebuild.FirstToken,
		order.Times{Now: now}))(b)
	return &dbSale{store, pool, sale, ordersn.NewKeys([]byte(secret))}
}

func (l *dbSale) batch(b *testing.B, size int) orderwriter.Batch {
	b.Helper()
	now := time.Now().UTC()
	batch := orderwriter.Batch{
		GoodsID: l.sale.GoodsID,
		Times:   order.Times{Now: now, PayBy: now.Add(15 * time.Minute)},
	}
	for range size {
		buyer := serial.Add(1)
		batch.Lines = append(batch.Lines, reservation.OrderLine{
			OrderSn: l.keys.Issue(l.sale.GoodsID, fmt.Sprint(buyer), now).String(),
			BuyerID: fmt.Sprint(buyer), Quantity: 1, Epoch: l.sale.Epoch, Name: "买家",
			Phone: "+8613800000000",
		})
	}
	return batch
}

func (l *dbSale) writeBatch(ctx context.Context, batch orderwriter.Batch) error {
	out, err := l.store.WriteBatch(ctx, batch)
	if err == nil && len(out.Created) != len(batch.Lines) {
		err = fmt.Errorf("%d of %d orders were created", len(out.Created), len(batch.Lines))
	}
	return err
}

// writeRaw inserts the orders and the holdings in a statement each, and takes their sum from the
// stock.
func (l *dbSale) writeRaw(ctx context.Context, batch orderwriter.Batch) error {
	var orders, holdings []any
	for _, line := range batch.Lines {
		orders = append(orders, l.sale.GoodsID, line.OrderSn, line.BuyerID, 1, line.Quantity,
			l.sale.Price, "created", "", line.Name,
			line.Phone, batch.Now.UnixMilli(), batch.PayBy.UnixMilli())
		holdings = append(holdings, l.sale.GoodsID, line.BuyerID, line.Quantity)
	}
	tx, err := l.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do after a commit
	n := len(batch.Lines)
	for _, statement := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO orders (goods_id, order_sn, buyer_id, epoch, quantity, amount, status,
			failure_reason, name, phone, created_at, pay_by) VALUES ` + rows(n, 12), orders},
		{`INSERT INTO buyer_holdings (goods_id, buyer_id, held) VALUES ` + rows(n, 3), holdings},
		{
			`UPDATE sales SET stock = stock - ?, version = version + 1
			WHERE goods_id = ? AND version = ? AND stock >= ?`,
			[]any{n, l.sale.GoodsID, l.sale.Version, n},
		},
	} {
		if _, err = tx.ExecContext(ctx, statement.text, statement.args...); err != nil {
			return err
		}
	}
	l.sale.Version++
	return tx.Commit()
}

// rows are the placeholders of a multi-row insert.
func rows(n, columns int) string {
	one := "(" + strings.Repeat("?,", columns-1) + "?)"
	return strings.Repeat(one+",", n-1) + one
}
