package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
)

// paymentRow is money that the provider took, by the provider's id. Kept is 1 or NULL: a unique key
// over goods, order and Kept allows an order one kept payment.
type paymentRow struct {
	PaymentID  string `gorm:"primaryKey"`
	GoodsID    int64
	OrderSn    string
	Amount     int64
	Currency   string
	State      payment.State
	Reason     payment.RefundReason
	Kept       *int64
	Attempts   int
	ReceivedAt int64
	RefundAt   *int64 // NULL of a refunding payment: the refunder has stopped
	RefundedAt *int64

	RefundSince   *int64
	RefundTriedAt *int64
	RefundProblem string
	SettledAt     *int64 // of a refunded payment: an operator returned the money in another way
}

func (paymentRow) TableName() string { return "payments" }

func (r paymentRow) payment() payment.Payment {
	return payment.Payment{
		ID: r.PaymentID, GoodsID: r.GoodsID, OrderSn: r.OrderSn, Amount: r.Amount,
		Currency: r.Currency,
	}
}

// refund converts the row of a payment that must be refunded.
func (r paymentRow) refund() payment.Refund {
	return payment.Refund{
		Payment: r.payment(), Reason: r.Reason, Attempts: r.Attempts,
		Since: timeOf(r.RefundSince), TriedAt: timeOf(r.RefundTriedAt), NextAt: timeOf(r.RefundAt),
		Problem: r.RefundProblem,
	}
}

// Receive stores payments of a goods and marks their created orders as paid under the orders'
// locks, in one transaction. If the database refuses that transaction, each payment gets its own. A
// payment that its order cannot keep, for example at payBy or later, or of another amount, is
// stored for a refund. A repeated payment changes nothing.
//
// The result has one receipt for each payment, in the same order. Err of a receipt is a Conflict
// where the id belongs to another payment, or where the amount is 0 and the order's is not. It is
// order.ErrNoSuchOrder, or the error of invalid data. An error of Receive itself wraps
// order.ErrTryAgain.
func (s *Store) Receive(
	ctx context.Context, goodsID int64, payments []payment.Payment, now time.Time,
) ([]payment.Receipt, error) {
	receipts, err := s.receive(ctx, goodsID, payments, now)
	switch {
	case err == nil || errors.Is(err, order.ErrTryAgain):
		return receipts, err
	case len(payments) == 1:
		return []payment.Receipt{{Err: err}}, nil
	}
	// The database refuses one of the payments, so each gets its own transaction.
	receipts = make([]payment.Receipt, len(payments))
	for i := range payments {
		one, err := s.receive(ctx, goodsID, payments[i:i+1], now)
		switch {
		case errors.Is(err, order.ErrTryAgain):
			return nil, err
		case err != nil:
			receipts[i] = payment.Receipt{Err: err}
		default:
			receipts[i] = one[0]
		}
	}
	return receipts, nil
}

// receive is one transaction of Receive. Its error is that of any payment. After an error nothing
// is written.
func (s *Store) receive(
	ctx context.Context, goodsID int64, payments []payment.Payment, now time.Time,
) ([]payment.Receipt, error) {
	return inTx(ctx, s, "receive payments", func(tx *gorm.DB) ([]payment.Receipt, error) {
		orders, err := lockOrders(tx, goodsID,
			mapSlice(payments, func(p payment.Payment) string { return p.OrderSn }))
		if err != nil {
			return nil, err
		}
		// Read under the orders' locks, so that a concurrent transaction of the same payment has
		// ended. The unique key detects an id that was used under another goods.
		rows, err := findIn[paymentRow](tx, goodsID, "payment_id",
			mapSlice(payments, func(p payment.Payment) string { return p.ID }))
		if err != nil {
			return nil, err
		}
		r := receiver{
			now: now, orders: make(map[string]orderRow), payments: make(map[string]paymentRow),
		}
		for _, o := range orders {
			r.orders[o.OrderSn] = o
		}
		for _, row := range rows {
			r.payments[row.PaymentID] = row
		}
		receipts := mapSlice(payments, r.receive)
		return receipts, r.write(tx, goodsID)
	})
}

// newIDTaken returns the refusal of an id that belongs to another payment.
func newIDTaken() error {
	return apierror.New(apierror.Conflict, "this payment id belongs to another payment")
}

// receiver decides on payments one after the other. It writes their result once.
type receiver struct {
	now      time.Time
	orders   map[string]orderRow   // locked, by number
	payments map[string]paymentRow // by the provider's id
	paid     []string
	added    []paymentRow
}

// receive decides on one payment.
func (r *receiver) receive(p payment.Payment) payment.Receipt {
	o, found := r.orders[p.OrderSn]
	row, known := r.payments[p.ID]
	switch {
	case !found:
		return payment.Receipt{Err: order.ErrNoSuchOrder}
	case known && row.payment() != p:
		return payment.Receipt{Err: newIDTaken()}
	case !known && p.Amount == 0 && o.Amount != 0: // no money was charged, so none can go back
		return payment.Receipt{
			Err: apierror.New(apierror.Conflict, "the amount is not the order's"),
		}
	case !known:
		row = r.add(&o, p)
		r.orders[p.OrderSn] = o
	}
	return payment.Receipt{Payment: p, State: row.State, Reason: row.Reason, Order: o.order()}
}

// add adds the row of a new payment, and marks its order as paid if the order keeps it.
func (r *receiver) add(o *orderRow, p payment.Payment) paymentRow {
	row := paymentRow{
		PaymentID: p.ID, GoodsID: p.GoodsID, OrderSn: p.OrderSn, Amount: p.Amount,
		Currency: p.Currency, ReceivedAt: r.now.UnixMilli(),
	}
	if row.Reason = payment.RefundReasonOf(o.order(), p, r.now); row.Reason == "" {
		row.State, row.Kept = payment.Kept, new(int64(1))
		o.Status, o.PaidAt = order.Paid, millis(r.now)
		r.paid = append(r.paid, o.OrderSn)
	} else {
		// From this commit on the money belongs to the buyer again; the refunder returns it.
		row.State, row.RefundAt = payment.Refunding, millis(r.now)
	}
	r.payments[p.ID], r.added = row, append(r.added, row)
	return row
}

// write stores the new payments and marks orders as paid.
func (r *receiver) write(tx *gorm.DB, goodsID int64) error {
	if err := changeStatus(tx, goodsID, r.paid, order.Created, order.Paid, "paid_at",
		r.now); err != nil {
		return err
	}
	if err := r.addEvents(tx, goodsID); err != nil {
		return err
	}
	// In ascending order, so that transactions with the same ids cannot wait for each other.
	slices.SortFunc(r.added, func(a, b paymentRow) int {
		return cmp.Compare(a.PaymentID, b.PaymentID)
	})
	err := insert(tx, r.added)
	if isDuplicate(err) { // of another order: these orders' payments were read under their locks
		return newIDTaken()
	}
	return err
}

// addEvents writes the events of paid orders. Payment does not lock the goods row, which is read
// under the locks of the orders: its last change is that of their creation or a later one.
func (r *receiver) addEvents(tx *gorm.DB, goodsID int64) error {
	if len(r.paid) == 0 {
		return nil
	}
	sale, err := findSale(tx, goodsID)
	if err != nil {
		return err
	}
	return addOrderEvents(tx, sale, event.OrderPaid, r.paid, changeTime(sale, r.now))
}
