package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// DueRefunds lists at most limit payments whose refund is due, the longest due first. Where more
// are due, up to half of them are those without an attempt, the last due first: a provider may
// answer slowly, or refuse the refunds of one sale for days, and new ones must not wait for all of
// them. A refund is due too if its last attempt, or else its due time, is after now: the server's
// clock was set back since.
func (s *Store) DueRefunds(
	ctx context.Context, now time.Time, limit int,
) ([]payment.Refund, error) {
	return halves(limit, func(newest bool, limit int) ([]payment.Refund, error) {
		q := s.read(ctx).Order("refund_at")
		if newest {
			q = s.read(ctx).Where("attempts = 0").Order("refund_at DESC")
		}
		q = q.Where(`state = ? AND refund_at IS NOT NULL
			AND (refund_at <= ? OR COALESCE(refund_tried_at, refund_at) > ?)`, payment.Refunding,
			now.UnixMilli(), now.Add(clockStep).UnixMilli())
		return list("list due refunds", q.Limit(limit), paymentRow.refund)
	})
}

// ClaimRefund records an attempt and postpones the next one. Of concurrent callers one raises the
// count. After the last attempt there is no next one.
func (s *Store) ClaimRefund(
	ctx context.Context, r payment.Refund, now time.Time,
) (bool, error) {
	res := s.read(ctx).Exec(`UPDATE payments SET attempts = attempts + 1, refund_at = ?,
			refund_since = COALESCE(refund_since, ?), refund_tried_at = ?
		WHERE goods_id = ? AND payment_id = ? AND state = ? AND attempts = ?
			AND refund_at IS NOT NULL`,
		millis(r.NextRefund(now)), now.UnixMilli(), now.UnixMilli(), r.GoodsID, r.ID,
		payment.Refunding, r.Attempts)
	return res.RowsAffected == 1, wrapError("claim a refund", res.Error)
}

// RecordRefundProblem records the problem of the attempt claimed at a moment. It changes nothing if
// that is not the payment's last attempt.
func (s *Store) RecordRefundProblem(
	ctx context.Context, p payment.Payment, claimed time.Time, problem string,
) error {
	err := s.read(ctx).Exec(`UPDATE payments SET refund_problem = ?
		WHERE goods_id = ? AND payment_id = ? AND state = ? AND refund_tried_at = ?`,
		truncate(problem, maxRefundProblem), p.GoodsID, p.ID, payment.Refunding,
		claimed.UnixMilli()).Error
	return wrapError("record the problem of a refund", err)
}

// maxRefundProblem is the length of the column refund_problem.
const maxRefundProblem = 255

// MarkRefunded records that the attempt claimed at a moment refunded a payment. It changes nothing
// if that is not the payment's last attempt, or if a refund was reported as failed since: the
// attempt may have made the refund that failed. The next attempt asks the provider again.
func (s *Store) MarkRefunded(ctx context.Context, p payment.Payment, claimed time.Time) error {
	ofAttempt := s.read(ctx).Where("refund_tried_at = ?", claimed.UnixMilli())
	return wrapError("mark a payment as refunded", markRefunded(ofAttempt, p, claimed).Error)
}

func markRefunded(q *gorm.DB, p payment.Payment, now time.Time) *gorm.DB {
	return q.Model(&paymentRow{}).
		Where("goods_id = ? AND payment_id = ? AND state = ?", p.GoodsID, p.ID, payment.Refunding).
		Updates(map[string]any{
			"state": payment.Refunded, "refund_at": nil, "refunded_at": now.UnixMilli(),
			"refund_problem": "",
		})
}

// OpenRefunds lists at most limit payments that are not refunded yet, with ids after the given one.
// They are few, so that the index of due refunds serves them too.
func (s *Store) OpenRefunds(
	ctx context.Context, after string, limit int,
) ([]payment.Refund, error) {
	q := s.read(ctx).Where("state = ? AND payment_id > ?", payment.Refunding, after)
	return list("list refunds", q.Order("payment_id").Limit(limit), paymentRow.refund)
}

// OpenRefund returns a payment that is not refunded yet, or that an operator has settled. Otherwise
// it returns payment.ErrNoSuchRefund.
func (s *Store) OpenRefund(ctx context.Context, paymentID string) (payment.Refund, error) {
	row, err := takeRefund(s.read(ctx), paymentID)
	return row.refund(), wrapError("find a refund", err)
}

func takeRefund(q *gorm.DB, paymentID string) (paymentRow, error) {
	return take[paymentRow](
		q.Where("payment_id = ? AND (state = ? OR settled_at IS NOT NULL)", paymentID,
			payment.Refunding), payment.ErrNoSuchRefund)
}

// CountStoppedRefunds counts the refunds that wait for an operator.
func (s *Store) CountStoppedRefunds(ctx context.Context) (int64, error) {
	return count[paymentRow]("count stopped refunds",
		s.read(ctx).Where("state = ? AND refund_at IS NULL", payment.Refunding))
}

// OldestRefund returns since when the oldest refund that is still tried is due, from its first
// attempt on, or the zero time. Few refunds are open, so that the index of due refunds serves it.
func (s *Store) OldestRefund(ctx context.Context) (time.Time, error) {
	var since *int64
	err := s.read(ctx).Raw(`SELECT MIN(COALESCE(refund_since, refund_at)) FROM payments
		WHERE state = ? AND refund_at IS NOT NULL`, payment.Refunding).Scan(&since).Error
	return timeOf(since), wrapError("find the oldest refund", err)
}

// RetryRefund makes a refund due, with a new period, and records who asked for it.
func (s *Store) RetryRefund(
	ctx context.Context, paymentID string, now time.Time,
) (payment.Refund, error) {
	return s.changeRefund(ctx, paymentID, salechange.ActRetryRefund, "", now,
		func(tx *gorm.DB, row *paymentRow) error {
			if row.SettledAt != nil {
				return payment.ErrNoSuchRefund
			}
			row.Attempts, row.RefundAt, row.RefundSince = 0, millis(now), nil
			return updateOne(tx.Exec(`UPDATE payments
				SET attempts = 0, refund_at = ?, refund_since = NULL
				WHERE goods_id = ? AND payment_id = ? AND state = ?`,
				row.RefundAt, row.GoodsID, row.PaymentID, payment.Refunding))
		})
}

// SettleRefund marks a payment as refunded, and records who says so and why. It does not change a
// settled one again.
func (s *Store) SettleRefund(
	ctx context.Context, paymentID, note string, now time.Time,
) (payment.Refund, error) {
	return s.changeRefund(ctx, paymentID, salechange.ActSettleRefund, note, now,
		func(tx *gorm.DB, row *paymentRow) error {
			if row.refund().InProgress(now) {
				return apierror.New(apierror.Conflict,
					"an attempt may be in progress; ask again in some seconds")
			}
			row.RefundAt, row.RefundProblem = nil, ""
			return updateOne(tx.Exec(`UPDATE payments
				SET state = ?, refund_at = NULL, refunded_at = ?, settled_at = ?, refund_problem = ''
				WHERE goods_id = ? AND payment_id = ? AND state = ?`, payment.Refunded,
				now.UnixMilli(), now.UnixMilli(), row.GoodsID, row.PaymentID, payment.Refunding))
		})
}

// changeRefund changes a payment to be refunded under its order's lock, in one transaction with its
// entry in the audit log.
func (s *Store) changeRefund(
	ctx context.Context, paymentID string, action salechange.Action, note string, now time.Time,
	change func(tx *gorm.DB, row *paymentRow) error,
) (payment.Refund, error) {
	return inTx(ctx, s, "change a refund", func(tx *gorm.DB) (none payment.Refund, err error) {
		row, err := takeRefund(locked(tx), paymentID)
		if err != nil {
			return none, err
		}
		if row.SettledAt != nil && action == salechange.ActSettleRefund { // asked again
			return row.refund(), nil
		}
		e := orderEntry(tx, action, row.GoodsID, row.OrderSn, now)
		e.Became["paymentId"] = row.PaymentID
		if note != "" {
			e.Became["note"] = note
		}
		if err = change(tx, &row); err != nil {
			return none, err
		}
		return row.refund(), tx.Create(e).Error
	})
}

// CancelReturned cancels the paid order that keeps a payment, and records the payment as refunded,
// in one transaction. A payment that waits for the refunder needs no refund any more. A shipped
// order stays paid: its goods do not come back with the money. So does an order if one of the
// refunds has failed: another process has recorded that meanwhile.
func (s *Store) CancelReturned(
	ctx context.Context, p payment.Payment, refunds []string, reason payment.RefundReason,
	now time.Time,
) (payment.Cancellation, error) {
	return inSaleTx(ctx, s, "cancel an order whose payment was returned", p.GoodsID,
		func(tx *gorm.DB, sale saleRow) (none payment.Cancellation, err error) {
			rows, err := lockOrders(tx, p.GoodsID, []string{p.OrderSn})
			if err != nil || len(rows) == 0 {
				return none, cmp.Or(err, order.ErrNoSuchOrder)
			}
			known, err := findIn[reversalRow](tx, p.GoodsID, "reversal_id", refunds)
			failed := slices.ContainsFunc(known, func(r reversalRow) bool { return r.Closed })
			if err != nil || failed {
				return payment.Cancellation{Order: rows[0].order()}, err
			}
			paid, err := take[paymentRow](
				tx.Where("goods_id = ? AND payment_id = ?", p.GoodsID, p.ID),
				payment.ErrNoSuchPayment)
			if err == nil && paid.State == payment.Refunding {
				err = markRefunded(tx, p, now).Error
			}
			if err != nil || paid.State != payment.Kept || rows[0].Status != order.Paid ||
				rows[0].ShippedAt != nil {
				return payment.Cancellation{Order: rows[0].order()}, err
			}
			if err := returnPayment(tx, rows[0], true, reason, now); err != nil {
				return none, err
			}
			return endOrder(tx, sale, rows, order.Paid, salechange.ActRefundOrder, now)
		})
}
