package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// MovesOfOrder lists an order's moves that nobody has marked as given.
func (s *Store) MovesOfOrder(ctx context.Context, goodsID int64, orderSn string) ([]order.StockMove, error) {
	var rows []moveRow
	err := s.read(ctx).Where("goods_id = ? AND order_sn = ? AND given_at IS NULL", goodsID, orderSn).Order("id").Find(&rows).Error
	return mapSlice(rows, moveRow.move), wrapError("list an order's moves", err)
}

// PlanReturn writes a move that the giver will not see before the moment it is dated: what is taken in Redis for an order
// that is being revived goes back by it, unless Revive removes it first. Unavailable while the order has another move that
// is not given, so that one at a time revives it.
func (s *Store) ScheduleRelease(ctx context.Context, goodsID int64, l reservation.OrderLine, at time.Time) (order.StockMove, error) {
	var move order.StockMove
	err := s.inTx(ctx, "plan a return", func(tx *gorm.DB) error {
		sale, err := lockSale(tx, goodsID)
		if err != nil {
			return err
		}
		var waiting int64
		err = tx.Model(&moveRow{}).Where("goods_id = ? AND order_sn = ? AND given_at IS NULL", goodsID, l.OrderSn).Count(&waiting).Error
		if err != nil {
			return err
		}
		if waiting > 0 {
			return seckill.NewUnavailable("the order's units are on their way back, or being taken anew", nil)
		}
		if err := unretire(tx, &sale); err != nil {
			return err
		}
		if move, err = newMove(sale, l, order.MoveFail, at); err != nil {
			return err
		}
		return insert(tx, []moveRow{rowOfMove(move)})
	})
	return move, err
}

// Revive turns a failed order into a created one, with holdings and stock, and removes its dead letter and the planned
// return, all in one transaction. One that is created or further already stays as it is. Conflict where there is no room
// for it; order.ErrTryAgain, and nothing done, where the return's epoch is over or the return itself is on its way.
func (s *Store) RestoreOrder(ctx context.Context, letterID string, undo order.StockMove, now, payBy time.Time) (order.Order, error) {
	var row orderRow
	err := s.inTx(ctx, "revive an order", func(tx *gorm.DB) error {
		sale, err := lockSale(tx, undo.GoodsID)
		if err != nil {
			return err
		}
		rows, err := lockOrders(tx, undo.GoodsID, []string{undo.OrderSn})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return order.ErrNoSuchOrder
		}
		if row = rows[0]; row.Status == order.Failed {
			if sale.Epoch != undo.Epoch {
				return order.ErrTryAgain
			}
			if err := restore(tx, sale, &row, now, payBy); err != nil {
				return err
			}
		}
		return removeReturn(tx, letterID, undo)
	})
	return row.order(), err
}

func restore(tx *gorm.DB, sale saleRow, row *orderRow, now, payBy time.Time) error {
	held, err := holdings(tx, sale.GoodsID, []int64{row.BuyerID})
	if err != nil {
		return err
	}
	after := held[row.BuyerID] + row.Quantity
	if row.Quantity <= 0 || after > sale.MaxPerBuyerLimit || row.Quantity > sale.Stock {
		return seckill.NewError(seckill.Conflict, "the database has no room for this order")
	}
	res := tx.Exec(`UPDATE orders SET status = ?, failure_reason = '', epoch = ?, pay_by = ?, closed_at = NULL
		WHERE goods_id = ? AND order_sn = ? AND status = ?`,
		order.Created, sale.Epoch, payBy.UnixMilli(), sale.GoodsID, row.OrderSn, order.Failed)
	if res.Error == nil && res.RowsAffected != 1 {
		return order.ErrTryAgain
	}
	if res.Error != nil {
		return res.Error
	}
	row.Status, row.FailureReason, row.Epoch, row.PayBy, row.ClosedAt = order.Created, "", sale.Epoch, millis(payBy), nil
	if err := setHoldings(tx, sale.GoodsID, map[int64]int64{row.BuyerID: after}); err != nil {
		return err
	}
	return changeStock(tx, sale, -row.Quantity, now)
}

// removeReturn removes the planned return, which nobody may have given yet, and the letter, which another may have removed.
func removeReturn(tx *gorm.DB, letterID string, undo order.StockMove) error {
	res := tx.Where("goods_id = ? AND id = ? AND given_at IS NULL", undo.GoodsID, undo.ID).Delete(&moveRow{})
	if res.Error == nil && res.RowsAffected != 1 {
		return order.ErrTryAgain
	}
	if res.Error != nil {
		return res.Error
	}
	return tx.Where("goods_id = ? AND id = ?", undo.GoodsID, letterID).Delete(&deadLetterRow{}).Error
}
