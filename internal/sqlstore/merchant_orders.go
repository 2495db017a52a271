package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// CancelForMerchant cancels an order of a status, created or paid and not shipped, by the context's
// actor. The same transaction returns its units, marks the payment of a paid one for the refunder,
// and writes the audit log. A repeated call returns the cancelled order. Any other order is a
// Conflict, and so is a cancelled one that was never paid, if the status is paid.
func (s *Store) CancelForMerchant(
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
			case from == order.Paid && rows[0].PaidAt == nil:
				return payment.Cancellation{Err: notPaid(rows[0])}, nil
			case rows[0].Status != from:
				return withoutMove(rows[0]), nil
			case rows[0].ShippedAt != nil:
				return payment.Cancellation{Err: apierror.New(apierror.Conflict,
					"the order is shipped; refund it at the payment provider")}, nil
			}
			action := salechange.ActCancelOrder
			if from == order.Paid {
				action = salechange.ActRefundOrder
				err := returnPayment(tx, rows[0], rows[0].Amount == 0, payment.RefundByMerchant,
					now)
				if err != nil {
					return payment.Cancellation{}, err
				}
			}
			return endOrder(tx, sale, rows, from, action, now)
		})
}

func notPaid(row orderRow) *apierror.Error {
	return apierror.New(apierror.Conflict, "the order is %s, not paid", row.Status)
}

// endOrder cancels the one locked order of a status, with its entry in the audit log.
func endOrder(
	tx *gorm.DB, sale saleRow, rows []orderRow, from order.Status, action salechange.Action,
	now time.Time,
) (payment.Cancellation, error) {
	ended, moves, err := release(tx, sale, rows, from, order.Cancelled, order.MoveCancel, now)
	if err != nil {
		return payment.Cancellation{}, err
	}
	err = auditOrder(tx, action, from, ended[0], now)
	return payment.Cancellation{Order: ended[0].order(), Move: &moves[0]}, err
}

// returnPayment marks the payment that an order kept as one to refund, and the refunder returns the
// money. With returned it marks it as refunded: nothing was paid, or the provider has returned it.
func returnPayment(
	tx *gorm.DB, row orderRow, returned bool, reason payment.RefundReason, now time.Time,
) error {
	state, due, done := payment.Refunding, millis(now), (*int64)(nil)
	if returned {
		state, due, done = payment.Refunded, nil, millis(now)
	}
	return requireRows(tx.Exec(`UPDATE payments
		SET state = ?, reason = ?, kept = NULL, refund_at = ?, refunded_at = ?
		WHERE goods_id = ? AND order_sn = ? AND kept = 1`,
		state, reason, due, done, row.GoodsID, row.OrderSn), 1, errNoPayment)
}

// errNoPayment refuses the refund of an order whose payment an early release did not record.
var errNoPayment = apierror.New(apierror.Conflict,
	"no payment of the order is recorded; refund it at the payment provider")

// Ship records that a paid order was sent, by the context's actor. A repeated call with another
// shipment replaces it, and with the same one changes nothing. An order that is not paid is a
// Conflict.
func (s *Store) Ship(
	ctx context.Context, goodsID int64, orderSn string, shipment order.Shipment, now time.Time,
) (order.Order, error) {
	return inSaleTx(ctx, s, "ship an order", goodsID,
		func(tx *gorm.DB, sale saleRow) (none order.Order, err error) {
			row, err := findOrder(locked(tx), goodsID, orderSn)
			if err != nil {
				return none, err
			}
			if row.Status != order.Paid {
				return none, notPaid(row)
			}
			first := row.ShippedAt == nil
			if !first && row.Shipment == shipment {
				return row.order(), nil
			}
			if first {
				row.ShippedAt = millis(now)
			}
			row.Shipment = shipment
			err = updateOne(tx.Exec(`UPDATE orders
				SET shipped_at = ?, carrier = ?, tracking_number = ? WHERE goods_id = ? AND order_sn = ?`,
				row.ShippedAt, shipment.Carrier, shipment.TrackingNumber, goodsID, orderSn))
			if err == nil && first {
				at := latest(changeTime(sale, now), row.PaidAt)
				err = addEventsAlone(tx, sale, event.OrderShipped, []string{orderSn}, at)
			}
			if err == nil {
				err = auditOrder(tx, salechange.ActShipOrder, order.Paid, row, now)
			}
			return row.order(), err
		})
}

// SetAddress stores an order's encrypted address while the order is created or paid and not
// shipped. It locks that order only, so buyers' addresses do not delay the sale.
func (s *Store) SetAddress(
	ctx context.Context, goodsID int64, orderSn, sealed string,
) (order.Order, error) {
	return inTx(ctx, s, "store an address", func(tx *gorm.DB) (none order.Order, err error) {
		done := tx.Exec(`UPDATE orders SET address = ? WHERE goods_id = ? AND order_sn = ?
			AND status IN (?, ?) AND shipped_at IS NULL`,
			sealed, goodsID, orderSn, order.Created, order.Paid)
		if done.Error != nil {
			return none, done.Error
		}
		row, err := findOrder(tx, goodsID, orderSn)
		switch {
		case err != nil:
			return none, err
		case done.RowsAffected == 1:
			return row.order(), nil
		case row.ShippedAt != nil:
			return none, apierror.New(apierror.Conflict, "the order is shipped")
		default:
			return none, apierror.New(apierror.Conflict, "the order is %s", row.Status)
		}
	})
}

// RecordReveal records that the context's actor has read the data of an order's buyer.
func (s *Store) RecordReveal(ctx context.Context, o order.Order, now time.Time) error {
	return s.inTx(ctx, "record who has read an order", func(tx *gorm.DB) error {
		return tx.Create(orderEntry(tx, salechange.ActRevealOrder, o.GoodsID, o.OrderSn, now)).Error
	})
}

// RecordExport records that the context's actor reads the data of a sale's buyers.
func (s *Store) RecordExport(ctx context.Context, goodsID int64, now time.Time) error {
	return s.inTx(ctx, "record who exports orders", func(tx *gorm.DB) error {
		return tx.Create(newAuditEntry(tx, salechange.ActExportOrders, goodsID, now)).Error
	})
}

// auditOrder records a merchant's change of an order in the audit log of its sale.
func auditOrder(
	tx *gorm.DB, action salechange.Action, was order.Status, row orderRow, now time.Time,
) error {
	e := orderEntry(tx, action, row.GoodsID, row.OrderSn, now)
	if was != row.Status {
		e.Was["status"], e.Became["status"] = string(was), string(row.Status)
	}
	if row.ShippedAt != nil {
		e.Became["carrier"], e.Became["trackingNumber"] = row.Carrier, row.TrackingNumber
	}
	return tx.Create(e).Error
}

// orderEntry is an entry of the audit log about an order, by the context's actor.
func orderEntry(
	tx *gorm.DB, action salechange.Action, goodsID int64, orderSn string, now time.Time,
) *auditRow {
	e := newAuditEntry(tx, action, goodsID, now)
	e.Became["orderSn"] = orderSn
	return e
}
