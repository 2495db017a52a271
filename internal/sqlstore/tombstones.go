package sqlstore

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
)

// WriteTombstone writes the row of a lost order: its path has expired, and Redis does not have it
// in the epoch o.Epoch. The buyer gets the answer "lost" only after that, so that a late message
// finds the row and creates no order (ADR 35). It returns an existing row unchanged, and a parked
// order as queued. The error is order.ErrTryAgain if MySQL is in another epoch.
func (s *Store) WriteTombstone(ctx context.Context, o order.Order) (order.Order, error) {
	return inSaleTx(ctx, s, "write a tombstone", o.GoodsID,
		func(tx *gorm.DB, sale saleRow) (order.Order, error) {
			row, err := findOrder(tx, o.GoodsID, o.OrderSn)
			if !errors.Is(err, order.ErrNoSuchOrder) {
				return row.order(), err
			}
			late, err := parkedAmong(tx, o.GoodsID, []string{o.OrderSn})
			if err != nil {
				return order.Order{}, err
			}
			if len(late) > 0 {
				return late[0].order(), nil
			}
			// The Redis that does not have the order was of another epoch.
			if sale.Epoch != o.Epoch {
				return order.Order{}, order.ErrTryAgain
			}
			row = orderRow{
				Order: o, Created: o.CreatedAt.UnixMilli(), ClosedAt: millis(o.ClosedAt),
			}
			if err := insert(tx, []orderRow{row}); err != nil {
				return order.Order{}, err
			}
			return row.order(), addEventsAlone(tx, sale, event.OrderFailed, []string{o.OrderSn},
				changeTime(sale, o.ClosedAt))
		})
}

// fillTombstones stores the buyer and the units of late orders in their tombstones. They are few,
// so each has its own statement.
func fillTombstones(tx *gorm.DB, rows []orderRow) error {
	for _, r := range rows {
		err := updateOne(tx.Exec(`UPDATE orders
			SET buyer_id = ?, quantity = ?, amount = ?, name = ?, phone = ?
			WHERE goods_id = ? AND order_sn = ? AND status = ? AND quantity = 0`, r.BuyerID,
			r.Quantity, r.Amount, r.Name, r.Phone, r.GoodsID, r.OrderSn, order.Failed))
		if err != nil {
			return err
		}
	}
	return nil
}
