package sqlstore

import (
	"context"
	"errors"
	"math"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// Sale returns a sale, or seckill.ErrNoSuchGoods.
func (s *Store) Sale(ctx context.Context, goodsID int64) (seckill.Sale, error) {
	row, err := findSale(s.read(ctx), goodsID)
	return row.sale(), wrapError("find a sale", err)
}

// SalesOf lists at most limit sales of a merchant (0: of all), newest first, with goods ids below
// the given one (0: from the newest).
func (s *Store) SalesOf(
	ctx context.Context, merchantID, below int64, limit int,
) ([]seckill.Sale, error) {
	q := s.read(ctx)
	if merchantID != 0 {
		q = q.Where("merchant_id = ?", merchantID)
	}
	return saleList("list sales", newestSales(q, below, limit))
}

// ExposedSales lists the sales that buyers see, in the same way, including ended ones that are not
// closed. It reads the replica where there is one.
func (s *Store) ExposedSales(
	ctx context.Context, below int64, limit int,
) (list []seckill.Sale, err error) {
	err = s.readReplica(ctx, func(q *gorm.DB) (err error) {
		list, err = saleList("list exposed sales",
			newestSales(q.Where("status = ?", seckill.Exposed), below, limit))
		return err
	})
	return list, err
}

// LiveGoods lists the sales that background workers serve: exposed ones and those closed at
// closedSince or later (zero: all), until they are retired.
func (s *Store) LiveGoods(ctx context.Context, closedSince time.Time) ([]seckill.Sale, error) {
	// One statement, so that a sale closed meanwhile is listed exactly once.
	q := s.read(ctx).
		Where("(status = ? OR closed_at >= ?) AND retired_at IS NULL", seckill.Exposed,
			closedSince.UnixMilli())
	return saleList("list live goods", q.Order("goods_id"))
}

// CloseSale closes an exposed sale and returns it. A closed sale stays unchanged; a draft is a
// Conflict.
func (s *Store) CloseSale(ctx context.Context, goodsID int64, now time.Time) (seckill.Sale, error) {
	var row saleRow
	err := s.inTx(ctx, "close a sale", func(tx *gorm.DB) (err error) {
		if row, err = lockSale(tx, goodsID); err != nil {
			return err
		}
		switch row.Status {
		case seckill.Closed:
			return nil
		case seckill.Draft:
			return seckill.NewError(seckill.Conflict, "a draft is not on sale and can't be closed")
		}
		was := row
		row.Status, row.Updated, row.Closed = seckill.Closed, now.UnixMilli(), millis(now)
		err = tx.Exec(
			`UPDATE sales SET status = ?, updated_at = ?, closed_at = ? WHERE goods_id = ?`,
			row.Status, row.Updated, *row.Closed, goodsID,
		).Error
		if err != nil {
			return err
		}
		return audit(tx, salechange.ActClose, was, row, now)
	})
	return row.sale(), err
}

// Database reads MySQL's figures of a goods' units in one statement.
func (s *Store) Database(ctx context.Context, goodsID int64) (seckill.Database, error) {
	var d seckill.Database
	res := s.read(ctx).Raw(`SELECT s.stock, (SELECT COALESCE(SUM(o.quantity), 0) FROM orders o
		WHERE o.goods_id = s.goods_id AND o.status IN ('created', 'paid')) AS active
		FROM sales s WHERE s.goods_id = ?`, goodsID).Scan(&d)
	if res.Error == nil && res.RowsAffected == 0 {
		return d, wrapError("read the ledger", seckill.ErrNoSuchGoods)
	}
	return d, wrapError("read the ledger", res.Error)
}

// newestSales adds the paging. Rows with a bucket other than 0 are parts of sales that earlier
// releases split, all of them over (migration 13).
func newestSales(q *gorm.DB, below int64, limit int) *gorm.DB {
	if below == 0 {
		below = math.MaxInt64
	}
	return q.Where("bucket = 0 AND goods_id < ?", below).Order("goods_id DESC").Limit(limit)
}

func saleList(op string, q *gorm.DB) ([]seckill.Sale, error) {
	var rows []saleRow
	if err := q.Find(&rows).Error; err != nil {
		return nil, wrapError(op, err)
	}
	return mapSlice(rows, saleRow.sale), nil
}

func findSale(q *gorm.DB, goodsID int64) (saleRow, error) {
	var row saleRow
	err := q.Where("goods_id = ?", goodsID).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = seckill.ErrNoSuchGoods
	}
	return row, err
}

// lockSale reads a goods' row and locks it until the transaction ends. On SQLite the transaction
// already holds the lock. Later reads of the transaction see the latest commit.
func lockSale(tx *gorm.DB, goodsID int64) (saleRow, error) {
	return findSale(tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}), goodsID)
}
