package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// CancelForMerchant is Cancel for one order, by the context's actor, whom the audit log then names.
func (s *Store) CancelForMerchant(
	ctx context.Context, goodsID int64, orderSn string, now time.Time,
) (payment.Cancellation, error) {
	return s.endForMerchant(ctx, goodsID, orderSn, order.Created, now)
}

// Refund cancels a paid order that is not shipped, by the context's actor. The same transaction
// returns its units and marks its payment for the refunder. A repeated call returns the cancelled
// order. Any other order is a Conflict.
func (s *Store) Refund(
	ctx context.Context, goodsID int64, orderSn string, now time.Time,
) (payment.Cancellation, error) {
	return s.endForMerchant(ctx, goodsID, orderSn, order.Paid, now)
}

// endForMerchant cancels an order of a status in one transaction with its entry in the audit log.
func (s *Store) endForMerchant(
	ctx context.Context, goodsID int64, orderSn string, from order.Status, now time.Time,
) (payment.Cancellation, error) {
	return inSaleTx(ctx, s, "cancel an order for its merchant", goodsID,
		func(tx *gorm.DB, sale saleRow) (payment.Cancellation, error) {
			rows, err := lockOrders(tx, goodsID, []string{orderSn})
			switch {
			case err != nil:
				return payment.Cancellation{}, err
			case len(rows) == 0:
				return payment.Cancellation{Err: order.ErrNoSuchOrder}, nil
			case rows[0].Status != from:
				return withoutMove(rows[0]), nil
			case rows[0].ShippedAt != nil:
				return payment.Cancellation{Err: seckill.NewError(seckill.Conflict,
					"the order is shipped; refund it at the payment provider")}, nil
			}
			if from == order.Paid {
				if err := giveUpPayment(tx, rows[0], now); err != nil {
					return payment.Cancellation{}, err
				}
			}
			ended, moves, err := release(tx, sale, rows, from, order.Cancelled, order.MoveCancel, now)
			if err != nil {
				return payment.Cancellation{}, err
			}
			err = auditOrder(tx, salechange.ActCancelOrder, ended[0], now)
			return payment.Cancellation{Order: ended[0].order(), Move: &moves[0]}, err
		})
}

// giveUpPayment marks the payment that an order kept for the refunder, which returns the money. A
// payment of nothing is refunded at once.
func giveUpPayment(tx *gorm.DB, row orderRow, now time.Time) error {
	state, due, done := payment.Refunding, millis(now), (*int64)(nil)
	if row.Amount == 0 {
		state, due, done = payment.Refunded, nil, millis(now)
	}
	err := requireRows(tx.Exec(`UPDATE payments
		SET state = ?, reason = ?, kept = NULL, refund_at = ?, refunded_at = ?
		WHERE goods_id = ? AND order_sn = ? AND kept = 1`,
		state, payment.RefundByMerchant, due, done, row.GoodsID, row.OrderSn), 1, errNoPayment)
	return err
}

// errNoPayment refuses the refund of an order whose payment an early release did not record.
var errNoPayment = seckill.NewError(seckill.Conflict,
	"no payment of the order is recorded; refund it at the payment provider")

// Ship records that a paid order was sent, by the context's actor. A repeated call with another
// shipment replaces it, and with the same one changes nothing. An order that is not paid is a
// Conflict.
func (s *Store) Ship(
	ctx context.Context, goodsID int64, orderSn string, shipment order.Shipment, now time.Time,
) (order.Order, error) {
	return inSaleTx(ctx, s, "ship an order", goodsID,
		func(tx *gorm.DB, sale saleRow) (none order.Order, err error) {
			rows, err := lockOrders(tx, goodsID, []string{orderSn})
			switch {
			case err != nil:
				return none, err
			case len(rows) == 0:
				return none, order.ErrNoSuchOrder
			case rows[0].Status != order.Paid:
				return none, seckill.NewError(seckill.Conflict, "the order is %s, not paid",
					rows[0].Status)
			}
			row := rows[0]
			first := row.ShippedAt == nil
			if !first && row.Shipment == shipment {
				return row.order(), nil
			}
			if first {
				row.ShippedAt = millis(now)
			}
			row.Shipment = shipment
			err = requireRows(tx.Exec(`UPDATE orders
				SET shipped_at = ?, carrier = ?, tracking_number = ? WHERE goods_id = ? AND order_sn = ?`,
				row.ShippedAt, shipment.Carrier, shipment.TrackingNumber, goodsID, orderSn),
				1, order.ErrTryAgain)
			if err == nil && first {
				paid := latest(notBefore(sale, now), row.PaidAt)
				err = addOrderEvents(tx, sale, event.OrderShipped, []string{orderSn}, paid)
			}
			if err == nil {
				err = auditOrder(tx, salechange.ActShipOrder, row, now)
			}
			return row.order(), err
		})
}

// auditOrder records a merchant's change of an order in the audit log of its sale.
func auditOrder(tx *gorm.DB, action salechange.Action, row orderRow, now time.Time) error {
	by := seckill.ActorOf(tx.Statement.Context)
	became := map[string]any{"orderSn": row.OrderSn, "status": string(row.Status)}
	if row.ShippedAt != nil {
		became["carrier"], became["trackingNumber"] = row.Carrier, row.TrackingNumber
	}
	return tx.Create(&auditRow{
		GoodsID: row.GoodsID, ID: newID(), ActorID: by.ID, ActorRole: by.Role, Action: action,
		Was: map[string]any{}, Became: became, MadeAt: now.UnixMilli(),
	}).Error
}
