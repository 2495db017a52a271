package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// MovesOfOrder lists an order's unreleased moves.
func (s *Store) MovesOfOrder(
	ctx context.Context, goodsID int64, orderSn string,
) ([]order.StockMove, error) {
	return list("list an order's moves", movesOf(s.read(ctx), goodsID, orderSn), moveRow.move)
}

// movesOf finds an order's unreleased moves.
func movesOf(q *gorm.DB, goodsID int64, orderSn string) *gorm.DB {
	return q.Where("goods_id = ? AND order_sn = ? AND given_at IS NULL", goodsID, orderSn).
		Order("id")
}

// ScheduleRelease writes a stock move that the releaser applies at the given moment, unless
// RestoreOrder deletes it before. The move returns the units that Redis takes for an order that is
// being restored. The error is
//   - order.ErrNoSuchOrder for an order without a row;
//   - order.ErrActive for an active one: its units may be pending, and a return would sell them
//     twice;
//   - Conflict for an order that has ended, or whose row has other units than l;
//   - Unavailable while the order has another unreleased move: one caller at a time restores it.
func (s *Store) ScheduleRelease(
	ctx context.Context, goodsID int64, l reservation.OrderLine, at time.Time,
) (order.StockMove, error) {
	return inSaleTx(ctx, s, "schedule a release", goodsID,
		func(tx *gorm.DB, sale saleRow) (order.StockMove, error) {
			row, err := findOrder(tx, goodsID, l.OrderSn)
			switch {
			case err != nil:
			case row.Status.Active():
				err = order.ErrActive
			case row.Status != order.Failed:
				err = newEnded(row)
			case row.Quantity != l.Quantity:
				err = apierror.New(apierror.Conflict, "the order's row has %d units",
					row.Quantity)
			}
			if err != nil {
				return order.StockMove{}, err
			}
			return scheduleRelease(tx, sale, l, at)
		})
}

func scheduleRelease(
	tx *gorm.DB, sale saleRow, l reservation.OrderLine, at time.Time,
) (move order.StockMove, err error) {
	var waiting []moveRow
	if err := movesOf(tx, sale.GoodsID, l.OrderSn).Find(&waiting).Error; err != nil {
		return move, err
	}
	if len(waiting) > 0 {
		const why = "the order's units are being released or taken again"
		return move, apierror.NewUnavailable(why, nil)
	}
	if err := unretire(tx, &sale); err != nil {
		return move, err
	}
	move = newMove(sale, l, order.MoveFail, at)
	return move, insert(tx, []moveRow{rowOfMove(move)})
}

// ReturnUnits writes the stock move of an order that is final, and whose units Redis has pending.
// The error is Conflict if the order is active: an operator has requeued it since the caller read
// it, and its units are sold. It is Unavailable while the order has another unreleased move.
func (s *Store) ReturnUnits(
	ctx context.Context, goodsID int64, l reservation.OrderLine, now time.Time,
) error {
	const op = "return the units of an order"
	return s.inSaleTx(ctx, op, goodsID, func(tx *gorm.DB, sale saleRow) error {
		row, err := findOrder(tx, goodsID, l.OrderSn)
		if row.Status.Active() {
			err = apierror.New(apierror.Conflict, "the order is %s", row.Status)
		}
		if err == nil {
			_, err = scheduleRelease(tx, sale, l, now)
		}
		return err
	})
}

// RestoreOrder turns a failed order into a created one, with holdings and stock. The same
// transaction deletes its dead letter and the scheduled move undo, and writes the audit log. Of an
// active order, which another call has restored, it only deletes both; undo may then have no id.
// With an error it writes nothing. The error is
//   - order.ErrNoSuchOrder for an order without a row;
//   - Conflict where stock or limit do not allow it, or the order has ended since;
//   - order.ErrNoSuchDeadLetter for a failed order whose dead letter was discarded;
//   - order.ErrTryAgain where the move's epoch is over or the move is already released.
func (s *Store) RestoreOrder(
	ctx context.Context, deadLetterID string, undo order.StockMove, at order.Times,
) (order.Order, error) {
	return inSaleTx(ctx, s, "restore an order", undo.GoodsID,
		func(tx *gorm.DB, sale saleRow) (order.Order, error) {
			row, err := findOrder(locked(tx), undo.GoodsID, undo.OrderSn)
			if err != nil {
				return order.Order{}, err
			}
			deadLetters, err := removeReturn(tx, deadLetterID, undo)
			switch {
			case err != nil:
			case row.Status == order.Failed && deadLetters == 0:
				err = order.ErrNoSuchDeadLetter
			case row.Status == order.Failed && sale.Epoch != undo.Epoch:
				err = order.ErrTryAgain // the units were taken in an epoch that Redis no longer has
			case row.Status == order.Failed:
				at := at.Later()
				err = restore(tx, sale, &row, deadLetterID, at.Now, at.PayBy)
			case !row.Status.Active():
				err = newEnded(row)
			}
			return row.order(), err
		})
}

// newEnded is the refusal to restore an order that was written and has ended.
func newEnded(row orderRow) error {
	return apierror.New(apierror.Conflict,
		"the order is %s; its dead letter can only be discarded", row.Status)
}

// restore updates the order's row, the holdings and the stock, and records the operator's decision.
func restore(
	tx *gorm.DB, sale saleRow, row *orderRow, deadLetterID string, now, payBy time.Time,
) error {
	held, err := holdings(tx, sale.GoodsID, []string{row.BuyerID})
	if err != nil {
		return err
	}
	after := held[row.BuyerID] + row.Quantity
	// The rules may have changed since the order failed, and others may have bought its units.
	if after > sale.MaxPerBuyerLimit || row.Quantity > sale.Stock {
		return apierror.New(apierror.Conflict,
			"the database has too few units, or the buyer has reached the sale's highest limit")
	}
	err = updateOne(tx.Exec(`UPDATE orders
		SET status = ?, failure_reason = '', epoch = ?, pay_by = ?, closed_at = NULL
		WHERE goods_id = ? AND order_sn = ? AND status = ?`, order.Created, sale.Epoch,
		payBy.UnixMilli(), sale.GoodsID, row.OrderSn, order.Failed))
	if err != nil {
		return err
	}
	err = auditDeadLetter(tx, salechange.ActRequeueOrder, row.GoodsID, row.OrderSn, deadLetterID,
		now)
	if err != nil {
		return err
	}
	now = changeTime(sale, latest(now, row.ClosedAt))
	row.Status, row.FailureReason, row.Epoch = order.Created, "", sale.Epoch
	row.PayBy, row.ClosedAt = millis(payBy), nil
	err = addOrderEvents(tx, sale, event.OrderCreated, []string{row.OrderSn}, now)
	if err != nil {
		return err
	}
	if err := setHoldings(tx, sale.GoodsID, map[string]int64{row.BuyerID: after}); err != nil {
		return err
	}
	return changeStock(tx, sale, -row.Quantity, now)
}

// removeReturn deletes the scheduled move, which must be unreleased, and the dead letter. It
// returns how many dead letters it has deleted: 0 if another caller was first.
func removeReturn(tx *gorm.DB, deadLetterID string, undo order.StockMove) (int64, error) {
	if undo.ID != "" {
		err := updateOne(tx.Where("goods_id = ? AND id = ? AND given_at IS NULL", undo.GoodsID,
			undo.ID).
			Delete(&moveRow{}))
		if err != nil {
			return 0, err
		}
	}
	res := tx.Where("goods_id = ? AND id = ?", undo.GoodsID, deadLetterID).Delete(&deadLetterRow{})
	return res.RowsAffected, res.Error
}
