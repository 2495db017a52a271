package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// Pay turns a created order into a paid one and returns it; one that is paid already stays as it is. Any other state,
// and a payment at payBy or later, is a Conflict. It is one guarded statement on the order's row, so a cancel or an expiry
// at the same moment has one winner.
func (s *Store) Pay(ctx context.Context, goodsID int64, orderSn string, now time.Time) (order.Order, error) {
	var row orderRow
	err := s.inTx(ctx, "pay an order", func(tx *gorm.DB) error {
		res := tx.Exec(`UPDATE orders SET status = ?, paid_at = ?
			WHERE goods_id = ? AND order_sn = ? AND status = ? AND pay_by > ?`,
			order.Paid, now.UnixMilli(), goodsID, orderSn, order.Created, now.UnixMilli())
		if res.Error != nil {
			return res.Error
		}
		var err error
		if row, err = findOrder(tx, goodsID, orderSn); err != nil {
			return err
		}
		return paid(row)
	})
	return row.order(), err
}

func paid(row orderRow) error {
	switch row.Status {
	case order.Paid:
		return nil
	case order.Created:
		return seckill.Refuse(seckill.Conflict, "the time to pay is over")
	default:
		return seckill.Refuse(seckill.Conflict, "the order is %s", row.Status)
	}
}
