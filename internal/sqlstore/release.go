package sqlstore

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
)

// Cancel cancels created orders of a goods and returns their units in one transaction, so that
// concurrent buyers share one lock of the goods row. The result has one entry per number, in their
// order. A repeated number has its move once.
func (s *Store) Cancel(
	ctx context.Context, goodsID int64, orderSns []string, now time.Time,
) ([]payment.Cancellation, error) {
	return inSaleTx(ctx, s, "cancel orders", goodsID,
		func(tx *gorm.DB, sale saleRow) ([]payment.Cancellation, error) {
			rows, err := lockOrders(tx, goodsID, slices.Clone(orderSns))
			if err != nil {
				return nil, err
			}
			found := make(map[string]payment.Cancellation, len(rows))
			for _, r := range rows {
				// The answers for orders that can be cancelled are replaced below.
				found[r.OrderSn] = withoutMove(r)
			}
			ended, moves, err := release(tx, sale, rows, order.Created, order.Cancelled,
				order.MoveCancel, now)
			for i, r := range ended {
				found[r.OrderSn] = payment.Cancellation{Order: r.order(), Move: &moves[i]}
			}
			return inRequestOrder(orderSns, found), err
		})
}

// withoutMove is the answer for an order that is cancelled already or cannot be cancelled.
func withoutMove(row orderRow) payment.Cancellation {
	if row.Status == order.Cancelled {
		return payment.Cancellation{Order: row.order()}
	}
	return payment.Cancellation{
		Err: apierror.New(apierror.Conflict, "the order is %s", row.Status),
	}
}

// inRequestOrder returns one answer for each number. A repeated number gets its move once, so that
// the caller releases it once.
func inRequestOrder(sns []string, found map[string]payment.Cancellation) []payment.Cancellation {
	list := make([]payment.Cancellation, len(sns))
	for i, sn := range sns {
		c, known := found[sn]
		if !known {
			c.Err = order.ErrNoSuchOrder
		}
		list[i], c.Move = c, nil
		found[sn] = c
	}
	return list
}

// Overdue returns those of the goods that have a created order whose payment was due at now or
// earlier. It reads the entries of the index orders_due for such orders alone.
func (s *Store) Overdue(
	ctx context.Context, goodsIDs []int64, now time.Time,
) (overdue []int64, err error) {
	for part := range slices.Chunk(goodsIDs, chunkOf(s.db)) {
		var found []int64
		err := s.read(ctx).Model(&orderRow{}).Distinct().
			Where("goods_id IN ? AND status = ? AND pay_by <= ?", part, order.Created,
				now.UnixMilli()).
			Pluck("goods_id", &found).Error
		if err != nil {
			return overdue, wrapError("find sales with overdue orders", err)
		}
		overdue = append(overdue, found...)
	}
	return overdue, nil
}

// ExpireDue expires created orders of a goods whose payment was due at now or earlier, at most
// limit, the longest overdue first. The same transaction returns their units. It returns their
// stock moves.
func (s *Store) ExpireDue(
	ctx context.Context, goodsID int64, now time.Time, limit int,
) ([]order.StockMove, error) {
	// Read without a lock, so that a goods with nothing to expire does not lock its hot row.
	var due []string
	err := s.read(ctx).Model(&orderRow{}).
		Where("goods_id = ? AND status = ?", goodsID, order.Created).
		Where("pay_by <= ?", now.UnixMilli()).
		Order("pay_by").Limit(limit).Pluck("order_sn", &due).Error
	if err != nil || len(due) == 0 {
		return nil, wrapError("find unpaid orders", err)
	}
	return inSaleTx(ctx, s, "expire orders", goodsID,
		func(tx *gorm.DB, sale saleRow) ([]order.StockMove, error) {
			rows, err := lockOrders(tx, goodsID, due)
			if err != nil {
				return nil, err
			}
			_, moves, err := release(tx, sale, rows, order.Created, order.Expired, order.MoveExpire,
				now)
			return moves, err
		})
}

// lockOrders reads and locks orders by primary key in ascending order, after the goods row.
func lockOrders(tx *gorm.DB, goodsID int64, sns []string) ([]orderRow, error) {
	slices.Sort(sns)
	return findIn[orderRow](locked(tx).Order("order_sn"), goodsID, "order_sn", sns)
}

// release ends those of these orders that have a status, whose rows and goods are locked. It
// returns their units to the holdings, to the stock, and by one move each. It returns the ended
// rows and their moves.
func release(
	tx *gorm.DB, sale saleRow, rows []orderRow, from, to order.Status, kind order.MoveKind,
	now time.Time,
) ([]orderRow, []order.StockMove, error) {
	rows = slices.DeleteFunc(rows, func(r orderRow) bool { return r.Status != from })
	sns := mapSlice(rows, func(r orderRow) string { return r.OrderSn })
	if err := changeStatus(tx, sale.GoodsID, sns, from, to, "closed_at", now); err != nil {
		return nil, nil, err
	}
	if err := lowerHoldings(tx, sale.GoodsID, rows); err != nil {
		return nil, nil, err
	}
	at := changeTime(sale, now)
	var units int64
	moves := make([]order.StockMove, 0, len(rows))
	for i, r := range rows {
		rows[i].Status, rows[i].ClosedAt = to, millis(now)
		at = latest(at, r.PaidAt) // a payment does not change the sale's row
		units, moves = units+r.Quantity, append(moves, newMove(sale, r.OrderLine, kind, now))
	}
	if err := changeStock(tx, sale, units, at); err != nil {
		return nil, nil, err
	}
	if err := addOrderEvents(tx, sale, event.OfStatus(to), sns, at); err != nil {
		return nil, nil, err
	}
	return rows, moves, insert(tx, mapSlice(moves, rowOfMove))
}

// changeStatus changes the status of orders and the time in a column. A row with another status
// than before means that its lock was not held.
func changeStatus(
	tx *gorm.DB, goodsID int64, sns []string, from, to order.Status, column string, now time.Time,
) error {
	for part := range slices.Chunk(sns, chunkOf(tx)) {
		err := requireRows(tx.Exec(`UPDATE orders SET status = ?, `+column+` = ?
			WHERE goods_id = ? AND order_sn IN ? AND status = ?`,
			to, now.UnixMilli(), goodsID, part, from),
			len(part), order.ErrTryAgain)
		if err != nil {
			return err
		}
	}
	return nil
}

// lowerHoldings subtracts the units from the buyers' holdings, so that they may buy again. Several
// of the orders may be one buyer's.
func lowerHoldings(tx *gorm.DB, goodsID int64, rows []orderRow) error {
	held, err := holdings(tx, goodsID, mapSlice(rows, func(r orderRow) string { return r.BuyerID }))
	if err != nil {
		return err
	}
	changed := make(map[string]int64, len(rows))
	for _, r := range rows {
		held[r.BuyerID] -= r.Quantity
		changed[r.BuyerID] = held[r.BuyerID]
	}
	return setHoldings(tx, goodsID, changed)
}
