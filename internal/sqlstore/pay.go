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

// paymentRow is money that the provider took, by the provider's own number. Kept is 1 or NULL: a
// unique key over goods, order and Kept allows an order one kept payment.
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

// TableName implements GORM's Tabler.
func (paymentRow) TableName() string { return "payments" }

// payment converts the row.
func (r paymentRow) payment() payment.Payment {
	return payment.Payment{
		ID: r.PaymentID, GoodsID: r.GoodsID, OrderSn: r.OrderSn, Amount: r.Amount,
	}
}

// refund converts the row of a payment that must be refunded.
func (r paymentRow) refund() payment.Refund {
	return payment.Refund{Payment: r.payment(), Reason: r.Reason, Attempts: r.Attempts}
}

// Receive stores a payment and marks its created order as paid, in one transaction under the
// order's lock. A payment that the order cannot keep, for example at payBy or later, is stored for
// a refund. A repeated payment changes nothing. It returns a Conflict where the amount differs from
// the order's or the number belongs to another payment, and order.ErrNoSuchOrder.
func (s *Store) Receive(
	ctx context.Context, p payment.Payment, now time.Time,
) (payment.Receipt, error) {
	return inTx(ctx, s, "receive a payment", func(tx *gorm.DB) (payment.Receipt, error) {
		o, err := findOrder(locked(tx), p.GoodsID, p.OrderSn)
		if err != nil {
			return payment.Receipt{}, err
		}
		// Read under the order's lock, so that a concurrent transaction of the same payment has
		// ended. The unique key detects a number that was used under another goods.
		q := tx.Where("goods_id = ? AND payment_id = ?", p.GoodsID, p.ID)
		row, err := take[paymentRow](q, errNoPayment)
		if errors.Is(err, errNoPayment) {
			row, err = receive(tx, &o, p, now)
		}
		if err != nil {
			return payment.Receipt{}, err
		}
		return payment.Receipt{
			Payment: p, State: row.State, Reason: row.Reason, Order: o.order(),
		}, requireSamePayment(row, p)
	})
}

var errNoPayment = errors.New("no such payment")

// requireSamePayment refuses a number that belongs to another payment.
func requireSamePayment(known paymentRow, p payment.Payment) error {
	if known.payment() != p {
		return seckill.NewError(seckill.Conflict, "this payment's number stands for another one")
	}
	return nil
}

// receive decides on a new payment of an order whose row is locked, and updates that row.
func receive(tx *gorm.DB, o *orderRow, p payment.Payment, now time.Time) (paymentRow, error) {
	row := paymentRow{
		PaymentID: p.ID, GoodsID: p.GoodsID, OrderSn: p.OrderSn, Amount: p.Amount,
		ReceivedAt: now.UnixMilli(),
	}
	// An amount that differs is a mistake of the provider or an attack. This code cannot decide
	// about a refund of it.
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
		// From this commit on the money belongs to the buyer again; the refunder returns it.
		row.State, row.RefundAt = payment.Refunding, millis(now)
	}
	err := tx.Create(&row).Error
	if isDuplicate(err) { // of another order: this order's payments were read under its lock
		err = requireSamePayment(paymentRow{}, p)
	}
	return row, err
}

// pay marks an order as paid in one guarded statement; no affected row means that the order's lock
// was not held.
func pay(tx *gorm.DB, o *orderRow, now time.Time) error {
	o.Status, o.PaidAt = order.Paid, millis(now)
	return updateOne(tx.Exec(`UPDATE orders SET status = ?, paid_at = ?
		WHERE goods_id = ? AND order_sn = ? AND status = ?`,
		order.Paid, now.UnixMilli(), o.GoodsID, o.OrderSn, order.Created))
}

// DueRefunds lists at most limit payments whose refund is due, the longest due first.
func (s *Store) DueRefunds(
	ctx context.Context, now time.Time, limit int,
) ([]payment.Refund, error) {
	q := s.read(ctx).Where("state = ? AND refund_at <= ?", payment.Refunding, now.UnixMilli())
	return list("list due refunds", q.Order("refund_at").Limit(limit), paymentRow.refund)
}

// ClaimRefund postpones the next attempt to a moment and reports whether the caller may make this
// attempt. Of concurrent callers one raises the count.
func (s *Store) ClaimRefund(ctx context.Context, r payment.Refund, next time.Time) (bool, error) {
	res := s.read(ctx).Exec(`UPDATE payments SET attempts = attempts + 1, refund_at = ?
		WHERE goods_id = ? AND payment_id = ? AND state = ? AND attempts = ?`,
		next.UnixMilli(), r.GoodsID, r.ID, payment.Refunding, r.Attempts)
	return res.RowsAffected == 1, wrapError("claim a refund", res.Error)
}

// MarkRefunded records that a payment was refunded. Repeats are harmless; the first time counts.
func (s *Store) MarkRefunded(ctx context.Context, p payment.Payment, now time.Time) error {
	err := s.read(ctx).Exec(`UPDATE payments SET state = ?, refund_at = NULL, refunded_at = ?
		WHERE goods_id = ? AND payment_id = ? AND state = ?`,
		payment.Refunded, now.UnixMilli(), p.GoodsID, p.ID, payment.Refunding).Error
	return wrapError("mark a payment as refunded", err)
}
