package sqlstore

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
)

// checkoutRow is an order's page at the provider. AskAt is NULL once the page has ended.
type checkoutRow struct {
	GoodsID    int64  `gorm:"primaryKey;autoIncrement:false"`
	OrderSn    string `gorm:"primaryKey"`
	Attempt    int
	CheckoutID string
	URL        string
	BegunAt    int64
	Asked      int
	AskAt      *int64
}

func (checkoutRow) TableName() string { return "checkouts" }

func (r checkoutRow) checkout() payment.Checkout {
	return payment.Checkout{
		GoodsID: r.GoodsID, OrderSn: r.OrderSn, Attempt: r.Attempt, BegunAt: timeOf(&r.BegunAt),
		ID: r.CheckoutID, URL: r.URL, Asked: r.Asked,
	}
}

// errNoCheckout reports that an order has no page yet.
var errNoCheckout = errors.New("the order has no checkout")

// errOtherPage reports that an order's page is another one, or has ended.
var errOtherPage = errors.New("the order's attempt to pay is another one or has ended")

// findCheckout reads the page of an order, whose row is locked.
func findCheckout(tx *gorm.DB, goodsID int64, orderSn string) (checkoutRow, error) {
	return take[checkoutRow](tx.Where("goods_id = ? AND order_sn = ?", goodsID, orderSn),
		errNoCheckout)
}

// BeginCheckout returns the open page of an order, or begins the next attempt. The lock of the
// order's row keeps concurrent callers apart, and every statement on a page takes it first.
func (s *Store) BeginCheckout(
	ctx context.Context, o order.Order, now, ask time.Time,
) (payment.Checkout, error) {
	return inTx(ctx, s, "begin a checkout", func(tx *gorm.DB) (payment.Checkout, error) {
		row, err := findOrder(locked(tx), o.GoodsID, o.OrderSn)
		if err != nil {
			return payment.Checkout{}, err
		}
		if payment.RefundReasonFor(row.order(), now) != "" {
			return payment.Checkout{}, apierror.New(apierror.Conflict,
				"the order can't be paid any more")
		}
		c, err := findCheckout(tx, o.GoodsID, o.OrderSn)
		first := errors.Is(err, errNoCheckout)
		if err != nil && !first || err == nil && c.AskAt != nil {
			return c.checkout(), err
		}
		next := checkoutRow{
			GoodsID: o.GoodsID, OrderSn: o.OrderSn, Attempt: c.Attempt + 1,
			BegunAt: now.UnixMilli(), AskAt: millis(ask),
		}
		if first {
			return next.checkout(), insert(tx, []checkoutRow{next})
		}
		err = updateOne(tx.Exec(`UPDATE checkouts SET attempt = ?, checkout_id = '', url = '',
				begun_at = ?, asked = 0, ask_at = ?
			WHERE goods_id = ? AND order_sn = ? AND ask_at IS NULL`, next.Attempt, next.BegunAt,
			next.AskAt, o.GoodsID, o.OrderSn))
		return next.checkout(), err
	})
}

// SaveCheckout records a page's id and URL, and shows the URL on its order. The page of an order
// that has ended is due at once. SaveCheckout returns an error unless the page is that of the
// order's open attempt: nobody would ask about it.
func (s *Store) SaveCheckout(ctx context.Context, c payment.Checkout) error {
	return s.inTx(ctx, "save a checkout", func(tx *gorm.DB) error {
		o, err := findOrder(locked(tx), c.GoodsID, c.OrderSn)
		if err != nil {
			return err
		}
		row, err := findCheckout(tx, c.GoodsID, c.OrderSn)
		switch {
		case err != nil:
			return err
		case row.Attempt != c.Attempt || row.AskAt == nil ||
			row.CheckoutID != "" && row.CheckoutID != c.ID:
			return errOtherPage
		case row.CheckoutID == c.ID:
			return nil
		}
		if o.Status != order.Created { // its cancellation knew no page to hasten
			row.AskAt = &row.BegunAt
		}
		err = updateOne(tx.Exec(`UPDATE checkouts SET checkout_id = ?, url = ?, ask_at = ?
			WHERE goods_id = ? AND order_sn = ?`, c.ID, c.URL, row.AskAt, c.GoodsID, c.OrderSn))
		if err != nil {
			return err
		}
		return setCheckoutURL(tx, c.GoodsID, c.OrderSn, c.URL)
	})
}

// EndCheckout ends a page, which the next attempt then follows. A page without an id is named by
// its attempt.
func (s *Store) EndCheckout(ctx context.Context, c payment.Checkout) error {
	return s.inTx(ctx, "end a checkout", func(tx *gorm.DB) error {
		if _, err := findOrder(locked(tx), c.GoodsID, c.OrderSn); err != nil {
			return err
		}
		res := tx.Exec(`UPDATE checkouts SET ask_at = NULL
			WHERE goods_id = ? AND order_sn = ? AND checkout_id = ?
				AND (checkout_id <> '' OR attempt = ?) AND ask_at IS NOT NULL`,
			c.GoodsID, c.OrderSn, c.ID, c.Attempt)
		if res.Error != nil || res.RowsAffected == 0 {
			return res.Error
		}
		return setCheckoutURL(tx, c.GoodsID, c.OrderSn, "")
	})
}

func setCheckoutURL(tx *gorm.DB, goodsID int64, orderSn, url string) error {
	return tx.Exec("UPDATE orders SET checkout_url = ? WHERE goods_id = ? AND order_sn = ?", url,
		goodsID, orderSn).Error
}

// HastenCheckout makes an open page due.
func (s *Store) HastenCheckout(
	ctx context.Context, goodsID int64, orderSn string, now time.Time,
) error {
	err := s.read(ctx).Exec(`UPDATE checkouts SET ask_at = ?
		WHERE goods_id = ? AND order_sn = ? AND ask_at > ?`,
		now.UnixMilli(), goodsID, orderSn, now.UnixMilli()).Error
	return wrapError("hasten a checkout", err)
}

// DueCheckouts lists at most limit open pages to ask about. Where more are due, half of them are
// those that are due for the longest time, and half those for the shortest. It includes pages that
// wait too long because the server's clock was set back.
func (s *Store) DueCheckouts(
	ctx context.Context, now time.Time, limit int,
) ([]payment.Checkout, error) {
	return halves(limit, func(newest bool, limit int) ([]payment.Checkout, error) {
		by := "ask_at"
		if newest {
			by = "ask_at DESC"
		}
		q := notLater(s.read(ctx), "ask_at", now, payment.PollPauseMax)
		return list("list due checkouts", q.Order(by).Limit(limit), checkoutRow.checkout)
	})
}

// ClaimCheckout postpones the next question. Of concurrent callers one raises the count.
func (s *Store) ClaimCheckout(
	ctx context.Context, c payment.Checkout, next time.Time,
) (bool, error) {
	res := s.read(ctx).Exec(`UPDATE checkouts SET asked = asked + 1, ask_at = ?
		WHERE goods_id = ? AND order_sn = ? AND attempt = ? AND asked = ? AND ask_at IS NOT NULL`,
		next.UnixMilli(), c.GoodsID, c.OrderSn, c.Attempt, c.Asked)
	return res.RowsAffected == 1, wrapError("claim a checkout", res.Error)
}

// reversalRow is the latest state of a refund or a dispute.
type reversalRow struct {
	GoodsID    int64  `gorm:"primaryKey;autoIncrement:false"`
	ReversalID string `gorm:"primaryKey"`
	OrderSn    string
	PaymentID  string
	Kind       payment.ReversalKind
	Amount     int64
	Currency   string
	State      string
	Closed     bool
	ReportedAt int64
}

func (reversalRow) TableName() string { return "payment_reversals" }

var errNoReversal = errors.New("the reversal is not recorded")

func (r reversalRow) reversal() payment.Reversal {
	return payment.Reversal{
		ID: r.ReversalID, Kind: r.Kind, GoodsID: r.GoodsID, OrderSn: r.OrderSn,
		PaymentID: r.PaymentID, Amount: r.Amount, Currency: r.Currency, State: r.State,
		Closed: r.Closed, At: timeOf(&r.ReportedAt),
	}
}

// ReversalsOf lists the refunds and disputes of an order. It reads those of its sale: few orders
// have any.
func (s *Store) ReversalsOf(
	ctx context.Context, goodsID int64, orderSn string,
) ([]payment.Reversal, error) {
	q := s.read(ctx).Where("goods_id = ? AND order_sn = ?", goodsID, orderSn)
	return list("list reversals", q.Order("reversal_id"), reversalRow.reversal)
}

// RecordReversal inserts or updates a refund or a dispute under the lock of its order.
func (s *Store) RecordReversal(ctx context.Context, r payment.Reversal, now time.Time) error {
	row := reversalRow{
		GoodsID: r.GoodsID, ReversalID: r.ID, OrderSn: r.OrderSn, PaymentID: r.PaymentID,
		Kind: r.Kind, Amount: r.Amount, Currency: r.Currency, State: r.State,
		Closed: r.Closed, ReportedAt: r.At.UnixMilli(),
	}
	return s.inTx(ctx, "record a reversal", func(tx *gorm.DB) error {
		if _, err := findOrder(locked(tx), r.GoodsID, r.OrderSn); err != nil {
			return err
		}
		known, err := take[reversalRow](
			tx.Where("goods_id = ? AND reversal_id = ?", r.GoodsID, r.ID), errNoReversal)
		isNew := errors.Is(err, errNoReversal)
		if err != nil && !isNew {
			return err
		}
		if r.Failed && !known.Closed {
			if err := refundAgain(tx, r, now); err != nil {
				return err
			}
		}
		if isNew {
			return insert(tx, []reversalRow{row})
		}
		// Two states of one second may arrive in either order; a closed one is the later.
		return tx.Exec(`UPDATE payment_reversals
			SET amount = ?, state = ?, closed = ?, reported_at = ?
			WHERE goods_id = ? AND reversal_id = ? AND closed = 0
				AND (reported_at <= ? OR ? = 1)`, row.Amount, row.State, row.Closed,
			row.ReportedAt, r.GoodsID, r.ID, row.ReportedAt, row.Closed).Error
	})
}

// refundAgain makes the payment of a failed refund due again, after the pause of a failed attempt,
// or leaves it to an operator. It changes no payment that its order keeps: the merchant began that
// refund at the provider. Nor does it change one whose money an operator has returned in another
// way. While an attempt may be in progress it returns an error, so that the provider reports again.
// Otherwise the refunder could record the failed refund as done. An attempt that takes longer,
// because its process was suspended, records nothing (MarkRefunded).
func refundAgain(tx *gorm.DB, r payment.Reversal, now time.Time) error {
	paid, err := take[paymentRow](
		tx.Where("goods_id = ? AND payment_id = ?", r.GoodsID, r.PaymentID), errNoPayment)
	switch {
	case errors.Is(err, errNoPayment):
		return nil
	case err != nil:
		return err
	case paid.State == payment.Refunding && paid.refund().InProgress(now):
		return apierror.NewUnavailable("the payment is being refunded", nil)
	}
	// DueRefunds recognises by refund_tried_at that the server's clock was set back since.
	return tx.Exec(`UPDATE payments
		SET state = ?, refund_at = ?, refund_tried_at = ?, refunded_at = NULL, refund_problem = ?
		WHERE goods_id = ? AND payment_id = ? AND state IN (?, ?) AND settled_at IS NULL`,
		payment.Refunding, millis(paid.refund().NextRefund(now)), now.UnixMilli(),
		truncate("refund "+r.ID+" was reported as "+r.State, maxRefundProblem),
		r.GoodsID, r.PaymentID, payment.Refunding, payment.Refunded).Error
}
