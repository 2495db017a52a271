package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// MovesOfOrder lists an order's unreleased moves.
func (s *Store) MovesOfOrder(
	ctx context.Context, goodsID int64, orderSn string,
) ([]order.StockMove, error) {
	var rows []moveRow
	err := s.read(ctx).
		Where("goods_id = ? AND order_sn = ? AND given_at IS NULL", goodsID, orderSn).Order("id").
		Find(&rows).Error
	return mapSlice(rows, moveRow.move), wrapError("list an order's moves", err)
}

// ScheduleRelease writes a stock move that the releaser applies at the given moment. It returns the
// units that Redis took for an order that is being restored, unless RestoreOrder deletes it first.
// Unavailable while the order has another unreleased move, so that one caller at a time restores
// it.
func (s *Store) ScheduleRelease(
	ctx context.Context, goodsID int64, l reservation.OrderLine, at time.Time,
) (order.StockMove, error) {
	var move order.StockMove
	err := s.inTx(ctx, "schedule a release", func(tx *gorm.DB) error {
		sale, err := lockSale(tx, goodsID)
		if err != nil {
			return err
		}
		var waiting int64
		err = tx.Model(&moveRow{}).
			Where("goods_id = ? AND order_sn = ? AND given_at IS NULL", goodsID, l.OrderSn).
			Count(&waiting).Error
		if err != nil {
			return err
		}
		if waiting > 0 {
			return seckill.NewUnavailable("the order's units are being released or taken again",
				nil)
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

// RestoreOrder turns a failed order into a created one, with holdings and stock, and deletes its
// dead letter and the scheduled move, in one transaction. An order in another state stays
// unchanged. Conflict where stock or limit do not allow it. order.ErrTryAgain, with nothing done,
// where the move's epoch is over or the move is already released.
func (s *Store) RestoreOrder(
	ctx context.Context, deadLetterID string, undo order.StockMove, now, payBy time.Time,
) (order.Order, error) {
	var row orderRow
	err := s.inTx(ctx, "restore an order", func(tx *gorm.DB) error {
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
		return removeReturn(tx, deadLetterID, undo)
	})
	return row.order(), err
}

// restore updates the order's row, the holdings and the stock.
func restore(tx *gorm.DB, sale saleRow, row *orderRow, now, payBy time.Time) error {
	held, err := holdings(tx, sale.GoodsID, []int64{row.BuyerID})
	if err != nil {
		return err
	}
	after := held[row.BuyerID] + row.Quantity
	if row.Quantity <= 0 || after > sale.MaxPerBuyerLimit || row.Quantity > sale.Stock {
		return seckill.NewError(seckill.Conflict, "the database has no room for this order")
	}
	res := tx.Exec(
		`UPDATE orders SET status = ?, failure_reason = '', epoch = ?, pay_by = ?, closed_at = NULL
		WHERE goods_id = ? AND order_sn = ? AND status = ?`,
		order.Created,
		sale.Epoch,
		payBy.UnixMilli(),
		sale.GoodsID,
		row.OrderSn,
		order.Failed,
	)
	if res.Error == nil && res.RowsAffected != 1 {
		return order.ErrTryAgain
	}
	if res.Error != nil {
		return res.Error
	}
	row.Status, row.FailureReason, row.Epoch, row.PayBy, row.ClosedAt = order.Created, "", sale.Epoch, millis(
		payBy,
	), nil
	if err := setHoldings(tx, sale.GoodsID, map[int64]int64{row.BuyerID: after}); err != nil {
		return err
	}
	return changeStock(tx, sale, -row.Quantity, now)
}

// removeReturn deletes the scheduled move, which must be unreleased, and the dead letter, which
// another caller may have deleted.
func removeReturn(tx *gorm.DB, deadLetterID string, undo order.StockMove) error {
	res := tx.Where("goods_id = ? AND id = ? AND given_at IS NULL", undo.GoodsID, undo.ID).
		Delete(&moveRow{})
	if res.Error == nil && res.RowsAffected != 1 {
		return order.ErrTryAgain
	}
	if res.Error != nil {
		return res.Error
	}
	return tx.Where("goods_id = ? AND id = ?", undo.GoodsID, deadLetterID).Delete(&deadLetterRow{}).
		Error
}
