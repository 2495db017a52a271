package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/seckill"
)

// OverBefore lists at most limit sales that ended or closed before a moment and are not retired. It
// returns those above a goods id (0: from the lowest), in ascending order.
func (s *Store) OverBefore(
	ctx context.Context, moment time.Time, above int64, limit int,
) ([]seckill.Sale, error) {
	ms := moment.UnixMilli()
	q := live(s.read(ctx)).
		Where("(status = ? AND end_at <= ? OR closed_at <= ?)", seckill.Exposed, ms, ms).
		Where("goods_id > ?", above)
	return list("list sales that are over", q.Order("goods_id").Limit(limit), saleRow.sale)
}

// RetiredBetween lists at most limit sales that were retired in [from, to), in the same order.
func (s *Store) RetiredBetween(
	ctx context.Context, from, to time.Time, above int64, limit int,
) ([]seckill.Sale, error) {
	q := s.read(ctx).Where("retired_at >= ? AND retired_at < ? AND goods_id > ?", from.UnixMilli(),
		to.UnixMilli(), above)
	return list("list retired sales", q.Order("goods_id").Limit(limit), saleRow.sale)
}

// Retire marks a sale that ended or was closed before a moment as over for good. It reports false
// while an order may still be paid, is parked, or units are on their way back. It also reports
// false for another epoch or version than the given one: Redis may sell in a period that the caller
// has not compared.
func (s *Store) Retire(
	ctx context.Context, sale seckill.Sale, overBefore, now time.Time,
) (bool, error) {
	const op = "retire a sale"
	return inSaleTx(ctx, s, op, sale.GoodsID, func(tx *gorm.DB, row saleRow) (bool, error) {
		if row.Epoch != sale.Epoch || row.Version != sale.Version ||
			!isOver(row, overBefore.UnixMilli()) {
			return false, nil
		}
		// Each of these may still move units of the sale in Redis.
		var waiting int64
		err := tx.Raw(`SELECT (SELECT COUNT(*) FROM orders WHERE goods_id = ? AND status = ?)
			+ (SELECT COUNT(*) FROM late_orders WHERE goods_id = ?)
			+ (SELECT COUNT(*) FROM stock_moves WHERE goods_id = ? AND given_at IS NULL)
			+ (SELECT COUNT(*) FROM stock_cuts WHERE goods_id = ? AND state = ?) AS waiting`,
			row.GoodsID, order.Created, row.GoodsID, row.GoodsID, row.GoodsID, inventory.CutOpen).
			Scan(&waiting).Error
		if err != nil || waiting > 0 {
			return false, err
		}
		row.RetiredAt = millis(now)
		return true, tx.Select("retired_at").Updates(&row).Error
	})
}

// isOver reports whether a sale was over at a moment: a closed one from its closing on, an exposed
// one from its end.
func isOver(row saleRow, moment int64) bool {
	if row.Closed != nil {
		return *row.Closed <= moment
	}
	return row.EndAt <= moment
}

// unretire clears the mark of a retired sale, whose row is locked, so that the background workers
// serve it again.
func unretire(tx *gorm.DB, sale *saleRow) error {
	if sale.RetiredAt == nil {
		return nil
	}
	sale.RetiredAt = nil
	return tx.Model(&saleRow{}).Where("goods_id = ?", sale.GoodsID).Update("retired_at", nil).Error
}
