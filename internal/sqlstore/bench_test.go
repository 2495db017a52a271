package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

var batchSizes = []int{1, 10, 100, 200, 500}

// BenchmarkWriteBatch is one writer at one goods, durable commits: orders/s by the batch's size.
func BenchmarkWriteBatch(b *testing.B) {
	benchEach(b, func(b *testing.B, h house, size int) {
		sale := h.exposed(seckill.MaxStock, 1)
		batches := make([]order.Batch, b.N)
		for i := range batches {
			batches[i] = batchOf(sale.GoodsID, h.lines(sale, size)...)
			for j := range batches[i].Lines {
				batches[i].Lines[j].BuyerID = int64(i*size + j + 1)
			}
		}
		b.ResetTimer()
		for _, batch := range batches {
			out, err := h.WriteBatch(b.Context(), batch)
			require.NoError(b, err)
			require.Len(b, out.Created, size)
		}
	})
}

// BenchmarkRawInsert is the floor: the same rows in one multi-row insert and one update of the stock per transaction,
// without GORM, and without asking or checking anything.
func BenchmarkRawInsert(b *testing.B) {
	benchEach(b, func(b *testing.B, h house, size int) {
		sale := h.exposed(seckill.MaxStock, 1)
		insert := `INSERT INTO orders (goods_id, order_sn, buyer_id, epoch, quantity, amount, status, failure_reason, name,
			phone, created_at, pay_by) VALUES ` + strings.Repeat("(?,?,?,?,?,?,?,?,?,?,?,?),", size-1) + "(?,?,?,?,?,?,?,?,?,?,?,?)"
		args := make([][]any, b.N)
		for i := range args {
			for _, l := range h.lines(sale, size) {
				args[i] = append(args[i], sale.GoodsID, l.OrderSn, l.BuyerID, 1, l.Quantity, sale.Price, "created", "", l.Name,
					l.Phone, today.UnixMilli(), today.UnixMilli())
			}
		}
		b.ResetTimer()
		for i := range args {
			require.NoError(b, rawBatch(b.Context(), h.pool, insert, args[i], sale.GoodsID, size))
		}
	})
}

func rawBatch(ctx context.Context, pool *sql.DB, insert string, args []any, goodsID int64, size int) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do after a commit
	if _, err := tx.ExecContext(ctx, insert, args...); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE sales SET stock = stock - ?, version = version + 1 WHERE goods_id = ?", size, goodsID)
	if err != nil {
		return err
	}
	return tx.Commit()
}

func benchEach(b *testing.B, run func(b *testing.B, h house, size int)) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			h := newHouse(b, d.dsn(b))
			for _, size := range batchSizes {
				b.Run(fmt.Sprint(size), func(b *testing.B) {
					run(b, h, size)
					b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "orders/s")
				})
			}
		})
	}
}
