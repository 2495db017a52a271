package sqlstore

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
)

// WriteTombstone writes a tombstone: the row of an order of an ended epoch that was lost with
// Redis, before its buyer learns of it. A late message then finds the row and creates no order (ADR
// 0035). An existing row stays unchanged and is returned. order.ErrTryAgain says that the order's
// epoch has not ended.
func (s *Store) WriteTombstone(ctx context.Context, o order.Order) (order.Order, error) {
	var row orderRow
	err := s.inTx(ctx, "write a tombstone", func(tx *gorm.DB) error {
		sale, err := lockSale(tx, o.GoodsID)
		if err != nil {
			return err
		}
		row, err = findOrder(tx, o.GoodsID, o.OrderSn)
		if !errors.Is(err, order.ErrNoSuchOrder) {
			return err
		}
		if sale.Epoch <= o.Epoch {
			return order.ErrTryAgain
		}
		row = tombstoneRow(o)
		return insert(tx, []orderRow{row})
	})
	return row.order(), err
}

// tombstoneRow is a failed order of zero units: their number is unknown.
func tombstoneRow(o order.Order) orderRow {
	return orderRow{
		GoodsID: o.GoodsID, OrderSn: o.OrderSn, BuyerID: o.BuyerID, Epoch: o.Epoch,
		Status: order.Failed, FailureReason: order.FailedLost, Created: o.CreatedAt.UnixMilli(),
		ClosedAt: millis(o.ClosedAt),
	}
}

// fillTombstones stores the buyer and the units of late orders in their tombstones. They are few,
// so each has its own statement.
func fillTombstones(tx *gorm.DB, rows []orderRow) error {
	for _, r := range rows {
		res := tx.Exec(
			`UPDATE orders SET buyer_id = ?, quantity = ?, amount = ?, name = ?, phone = ?
			WHERE goods_id = ? AND order_sn = ? AND status = ? AND quantity = 0`,
			r.BuyerID,
			r.Quantity,
			r.Amount,
			r.Name,
			r.Phone,
			r.GoodsID,
			r.OrderSn,
			order.Failed,
		)
		if res.Error == nil && res.RowsAffected != 1 {
			return order.ErrTryAgain
		}
		if res.Error != nil {
			return res.Error
		}
	}
	return nil
}
