package sqlstore

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
)

type paymentRow struct {
	PaymentID  string `gorm:"primaryKey"`
	GoodsID    int64
	OrderSn    string
	Amount     int64
	State      payment.State
	Reason     payment.RefundReason
	Kept       *int64
	Attempts   int
	ReceivedAt int64
	RefundAt   *int64
	RefundedAt *int64
}

// TableName is GORM's name of the table.
func (paymentRow) TableName() string { return "payments" }

func (r paymentRow) payment() payment.Payment {
	return payment.Payment{ID: r.PaymentID, GoodsID: r.GoodsID, OrderSn: r.OrderSn, Amount: r.Amount}
}

func (r paymentRow) refund() payment.Refund {
	return payment.Refund{Payment: r.payment(), Reason: r.Reason, Attempts: r.Attempts}
}

// Receive writes a payment down and makes its created order paid, in one transaction under the order's lock; a payment
// that the order can't keep, at payBy or later too, is to be given back. The same payment again changes nothing. Conflict
// where the amount is not the order's, or the number stands for another payment; order.ErrNoSuchOrder.
func (s *Store) Receive(ctx context.Context, p payment.Payment, now time.Time) (payment.Receipt, error) {
	var receipt payment.Receipt
	err := s.inTx(ctx, "receive a payment", func(tx *gorm.DB) error {
		rows, err := lockOrders(tx, p.GoodsID, []string{p.OrderSn})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return order.ErrNoSuchOrder
		}
		row, err := findPayment(tx, p) // under the order's lock: the same payment's first transaction has ended
		if errors.Is(err, gorm.ErrRecordNotFound) {
			row, err = receive(tx, &rows[0], p, now)
		}
		if err != nil {
			return err
		}
		receipt = payment.Receipt{Payment: p, State: row.State, Reason: row.Reason, Order: rows[0].order()}
		return requireSamePayment(row, p)
	})
	if err != nil {
		return payment.Receipt{}, err
	}
	return receipt, nil
}

// findPayment looks among the payments of the goods, where its number would be the second time; under another goods' it is
// met by the key.
func findPayment(tx *gorm.DB, p payment.Payment) (paymentRow, error) {
	var row paymentRow
	return row, tx.Where("goods_id = ? AND payment_id = ?", p.GoodsID, p.ID).Take(&row).Error
}

// requireSamePayment refuses a number that stands for another payment than it did before.
func requireSamePayment(known paymentRow, p payment.Payment) error {
	if known.payment() != p {
		return seckill.NewError(seckill.Conflict, "this payment's number stands for another one")
	}
	return nil
}

// receive judges a payment that is new for an order whose row is locked, and brings that row up to date.
func receive(tx *gorm.DB, o *orderRow, p payment.Payment, now time.Time) (paymentRow, error) {
	row := paymentRow{PaymentID: p.ID, GoodsID: p.GoodsID, OrderSn: p.OrderSn, Amount: p.Amount, ReceivedAt: now.UnixMilli()}
	if p.Amount != o.Amount {
		return row, seckill.NewError(seckill.Conflict, "the amount is not the order's")
	}
	if row.Reason = payment.RefundReasonFor(o.order(), now); row.Reason == "" {
		one := int64(1)
		row.State, row.Kept = payment.Kept, &one
		if err := pay(tx, o, now); err != nil {
			return row, err
		}
	} else {
		row.State, row.RefundAt = payment.Refunding, millis(now)
	}
	err := tx.Create(&row).Error
	if isDuplicate(err) { // of another order: this one's payments are looked for under its lock
		err = requireSamePayment(paymentRow{}, p)
	}
	return row, err
}

// pay is one guarded statement: an order that is not created means that its lock was not held.
func pay(tx *gorm.DB, o *orderRow, now time.Time) error {
	res := tx.Exec(`UPDATE orders SET status = ?, paid_at = ? WHERE goods_id = ? AND order_sn = ? AND status = ?`,
		order.Paid, now.UnixMilli(), o.GoodsID, o.OrderSn, order.Created)
	if res.Error == nil && res.RowsAffected != 1 {
		return order.ErrTryAgain
	}
	o.Status, o.PaidAt = order.Paid, millis(now)
	return res.Error
}

// DueRefunds lists at most limit payments that are to be given back now, the longest due first.
func (s *Store) DueRefunds(ctx context.Context, now time.Time, limit int) ([]payment.Refund, error) {
	var rows []paymentRow
	err := s.read(ctx).Where("state = ? AND refund_at <= ?", payment.Refunding, now.UnixMilli()).
		Order("refund_at").Limit(limit).Find(&rows).Error
	return mapSlice(rows, paymentRow.refund), wrapError("look for refunds", err)
}

// ClaimRefund puts the next try off until a moment, and tells whether this try is the caller's: whoever raises the count.
func (s *Store) ClaimRefund(ctx context.Context, r payment.Refund, next time.Time) (bool, error) {
	res := s.read(ctx).Exec(`UPDATE payments SET attempts = attempts + 1, refund_at = ?
		WHERE goods_id = ? AND payment_id = ? AND state = ? AND attempts = ?`, next.UnixMilli(), r.GoodsID, r.ID, payment.Refunding, r.Attempts)
	return res.RowsAffected == 1, wrapError("claim a refund", res.Error)
}

// MarkRefunded keeps that a payment was given back. It may be repeated; the first time counts.
func (s *Store) MarkRefunded(ctx context.Context, p payment.Payment, now time.Time) error {
	err := s.read(ctx).Exec(`UPDATE payments SET state = ?, refund_at = NULL, refunded_at = ?
		WHERE goods_id = ? AND payment_id = ? AND state = ?`,
		payment.Refunded, now.UnixMilli(), p.GoodsID, p.ID, payment.Refunding).Error
	return wrapError("mark a payment as given back", err)
}
