package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// Sale returns a sale, or seckill.ErrNoSuchGoods.
func (s *Store) Sale(ctx context.Context, goodsID int64) (seckill.Sale, error) {
	row, err := findSale(s.read(ctx), goodsID)
	return row.sale(), wrapError("find a sale", err)
}

// SalesOf lists at most limit sales of a merchant ("": of all), newest first, with goods ids below
// the given one (0: from the newest).
func (s *Store) SalesOf(
	ctx context.Context, merchantID string, below int64, limit int,
) ([]seckill.Sale, error) {
	q := s.read(ctx)
	if merchantID != "" {
		q = byIndex(q, "sales", "sales_of_merchant").Where("merchant_id = ?", merchantID)
	}
	return list("list sales", newestSales(q, below, limit), saleRow.sale)
}

// ExposedSales lists the exposed sales in the same way, including ended ones that are not closed.
// It reads the replica where there is one.
func (s *Store) ExposedSales(
	ctx context.Context, below int64, limit int,
) ([]seckill.Sale, error) {
	return readReplica(ctx, s, func(q *gorm.DB) ([]seckill.Sale, error) {
		q = newestSales(q.Where("status = ?", seckill.Exposed), below, limit)
		return list("list exposed sales", q, saleRow.sale)
	})
}

// LiveGoods lists the sales that background workers serve: exposed and closed ones, until they are
// retired. It lists those of some buckets, or all if buckets is nil. It is one statement, so that a
// sale closed meanwhile is listed exactly once.
func (s *Store) LiveGoods(ctx context.Context, buckets []int64) ([]seckill.Sale, error) {
	q := live(s.read(ctx)).Omit("description", "image_url", "metadata").Order("goods_id")
	if buckets != nil {
		q = q.Where("goods_id % ? IN ?", livesales.Buckets, buckets)
	}
	return list("list live goods", q, saleRow.sale)
}

// live selects the sales that are not retired. With the condition on the status it reads no others,
// by the index sales_live.
func live(q *gorm.DB) *gorm.DB {
	return q.Where("retired_at IS NULL AND status IN ?",
		[]seckill.Status{seckill.Exposed, seckill.Closed})
}

// LiveVersions sums, for each bucket, a checksum of each row that LiveGoods lists: orders,
// cancellations and a merchant's changes raise version, and a rebuild raises epoch. The goods id is
// a factor, because one sale may leave the list while another enters it. The moduli bound the sum.
func (s *Store) LiveVersions(ctx context.Context) (map[int64]int64, error) {
	// Some systems accept no expression beside sums although the statement groups by it.
	var sums []struct{ First, Version int64 }
	err := live(s.read(ctx).Model(&saleRow{})).Select(`MIN(goods_id) AS first,
		SUM((goods_id % 65521 + 1) * ((version + 1000003 * epoch) % 16777213)) AS version`).
		Group(fmt.Sprintf("goods_id %% %d", livesales.Buckets)).Scan(&sums).Error
	versions := make(map[int64]int64, len(sums))
	for _, sum := range sums {
		versions[sum.First%livesales.Buckets] = sum.Version
	}
	return versions, wrapError("read the versions of the live goods", err)
}

// HasUnpaid reports whether orders of a goods are created and not paid.
func (s *Store) HasUnpaid(ctx context.Context, goodsID int64) (bool, error) {
	var sns []string
	err := s.read(ctx).Model(&orderRow{}).
		Where("goods_id = ? AND status = ?", goodsID, order.Created).
		Limit(1).Pluck("order_sn", &sns).Error
	return len(sns) > 0, wrapError("find an unpaid order", err)
}

// CloseSale closes an exposed sale and returns it. It returns a closed sale unchanged; a draft is a
// Conflict.
func (s *Store) CloseSale(ctx context.Context, goodsID int64, now time.Time) (seckill.Sale, error) {
	row, err := inSaleTx(ctx, s, "close a sale", goodsID,
		func(tx *gorm.DB, row saleRow) (saleRow, error) {
			switch row.Status {
			case seckill.Closed:
				return row, nil
			case seckill.Draft:
				return row, apierror.New(apierror.Conflict,
					"a draft is not on sale and can't be closed")
			}
			// The audit entry needs the row before the change.
			was := row
			now := changeTime(row, now)
			row.Status, row.Updated, row.Closed = seckill.Closed, now.UnixMilli(), millis(now)
			row.Version++
			q := tx.Select("status", "version", "updated_at", "closed_at")
			if err := q.Updates(&row).Error; err != nil {
				return row, err
			}
			if err := addSaleEvent(tx, row, event.SaleClosed, now); err != nil {
				return row, err
			}
			return row, audit(tx, salechange.ActClose, was, row, now)
		})
	return row.sale(), err
}

// Database reads MySQL's figures of a goods' units in one statement, by an index alone.
func (s *Store) Database(ctx context.Context, goodsID int64) (seckill.Database, error) {
	var d seckill.Database
	res := s.read(ctx).Raw(`SELECT s.stock, (SELECT COALESCE(SUM(o.quantity), 0)
		FROM orders o`+byOrdersDue+`
		WHERE o.goods_id = s.goods_id AND o.status IN ('created', 'paid')) AS active
		FROM sales s WHERE s.goods_id = ?`, goodsID).Scan(&d)
	return d, wrapError("read the ledger", requireRows(res, 1, seckill.ErrNoSuchGoods))
}

// byOrdersDue follows the table of orders where the index orders_due has all columns that a
// statement reads. Without it MySQL and MariaDB prefer the primary key if most orders of a sale
// match, and read the whole rows.
const byOrdersDue = " /*! FORCE INDEX (orders_due) */"

// newestSales adds the paging. Rows with a bucket other than 0 are parts of sales that earlier
// releases split, all of them over (migration 13).
func newestSales(q *gorm.DB, below int64, limit int) *gorm.DB {
	if below == 0 {
		below = math.MaxInt64
	}
	return q.Where("bucket = 0 AND goods_id < ?", below).Order("goods_id DESC").Limit(limit)
}

// findSale reads a row without a lock. The row may change before the caller acts on it.
func findSale(q *gorm.DB, goodsID int64) (saleRow, error) {
	return take[saleRow](q.Where("goods_id = ?", goodsID), seckill.ErrNoSuchGoods)
}

// lockSale reads a goods' row and locks it until the transaction ends. On SQLite the transaction
// already holds the lock. Later reads of the transaction see the latest commit.
//
// Each batch of orders reads its goods' row, so lockSale avoids GORM's reflection.
func lockSale(tx *gorm.DB, goodsID int64) (row saleRow, err error) {
	columns, into, err := fieldsOf(tx, &row)
	if err != nil {
		return row, err
	}
	query := "SELECT " + columns + " FROM sales WHERE goods_id = ? LIMIT 1"
	if !isSQLite(tx) {
		query += " FOR UPDATE"
	}
	err = tx.Statement.ConnPool.QueryRowContext(tx.Statement.Context, query, goodsID).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		err = seckill.ErrNoSuchGoods
	}
	return row, translated(tx, err)
}
