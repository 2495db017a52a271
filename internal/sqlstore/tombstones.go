package sqlstore

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
)

// Lost writes a tomb: the row of an order of an ended epoch whose promise was lost with Redis, before its buyer is told so.
// Who comes with the order after all finds it there and does not write it (ADR 0035). Where there is a row it stays
// as it is and is returned; order.ErrTryAgain where the order's epoch has not ended.
func (s *Store) WriteTombstone(ctx context.Context, o order.Order) (order.Order, error) {
	var row orderRow
	err := s.inTx(ctx, "end a lost order", func(tx *gorm.DB) error {
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

// tombstoneRow is a failed order of no units: nobody knows how many they were, nor by whom, besides who asks.
func tombstoneRow(o order.Order) orderRow {
	return orderRow{
		GoodsID: o.GoodsID, OrderSn: o.OrderSn, BuyerID: o.BuyerID, Epoch: o.Epoch, Status: order.Failed,
		FailureReason: order.FailedLost, Created: o.CreatedAt.UnixMilli(), ClosedAt: millis(o.ClosedAt),
	}
}

// fillTombstones writes onto tombs whose they are. They are few, so each has its statement.
func fillTombstones(tx *gorm.DB, rows []orderRow) error {
	for _, r := range rows {
		res := tx.Exec(`UPDATE orders SET buyer_id = ?, quantity = ?, amount = ?, name = ?, phone = ?
			WHERE goods_id = ? AND order_sn = ? AND status = ? AND quantity = 0`,
			r.BuyerID, r.Quantity, r.Amount, r.Name, r.Phone, r.GoodsID, r.OrderSn, order.Failed)
		if res.Error == nil && res.RowsAffected != 1 {
			return order.ErrTryAgain
		}
		if res.Error != nil {
			return res.Error
		}
	}
	return nil
}
