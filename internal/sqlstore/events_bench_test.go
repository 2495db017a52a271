package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/seckill/reservation"
)

// BenchmarkEvents measures what the events cost a batch of orders, by the batch's size. It writes
// batches with and without their events by turns, to the same database, so that both meet the same
// machine. It reports the orders per second of each by the median batch, because a busy machine
// delays single batches by far more than events do. It also reports the cost in percent of the
// speed without events. The median of five rounds:
//
//	go test ./internal/sqlstore -run '^$' -bench Events -benchtime 100x -count 5
func BenchmarkEvents(b *testing.B) {
	for _, d := range databases {
		for _, size := range []int{100, 500} {
			b.Run(fmt.Sprintf("%s/%d", d.name, size), func(b *testing.B) {
				measureEvents(b, d.empty(b), size)
			})
		}
	}
}

func measureEvents(b *testing.B, dsn string, size int) {
	b.Helper()
	with, without := newFixture(b, dsn), openFixture(b, dsn, "")
	pool := eventlessPool{without.db.ConnPool}
	without.db.ConnPool, without.db.Statement.ConnPool = pool, pool
	stores := []fixture{with, without}
	sale, buyer, took := with.exposed(1<<30, 1), int64(0), [2][]time.Duration{}
	for turn := 0; b.Loop(); turn++ {
		for i := range stores {
			i = (i + turn) % 2 // either is first as often as the other
			lines := make([]reservation.OrderLine, size)
			for n := range lines {
				buyer++
				lines[n] = with.line(sale, buyer, 1)
			}
			batch := batchOf(sale.GoodsID, lines...)
			began := time.Now()
			out, err := stores[i].WriteBatch(b.Context(), batch)
			took[i] = append(took[i], time.Since(began))
			require.NoError(b, err)
			require.Len(b, out.Created, size)
		}
	}
	var rows int64
	require.NoError(b, with.db.Model(&eventRow{}).Count(&rows).Error)
	require.EqualValues(b, 1+b.N, rows, "the exposure, and every second batch")
	speed := func(took []time.Duration) float64 {
		slices.Sort(took)
		return float64(size) / took[len(took)/2].Seconds()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(speed(took[0]), "with-orders/s")
	b.ReportMetric(speed(took[1]), "without-orders/s")
	b.ReportMetric(100*(1-speed(took[0])/speed(took[1])), "%-slower")
}

// eventlessPool is a pool or a transaction that does not send the statements that write events.
type eventlessPool struct{ gorm.ConnPool }

func (p eventlessPool) ExecContext(
	ctx context.Context, query string, args ...any,
) (sql.Result, error) {
	if strings.HasPrefix(query, "INSERT INTO events ") {
		return driver.RowsAffected(1), nil
	}
	return p.ConnPool.ExecContext(ctx, query, args...)
}

func (p eventlessPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.ConnPool.(*sql.DB).BeginTx(ctx, opts)
	return &eventlessTx{eventlessPool{tx}, tx}, err
}

type eventlessTx struct {
	eventlessPool
	driver.Tx
}
