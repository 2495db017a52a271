package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/query"
)

// openPage returns a payable order with the page where its buyer pays. The checkout is recorded
// before the provider is asked, so that the poller finds a page whose answer got lost.
func (s *Service) openPage(ctx context.Context, o order.Order, now time.Time) (order.Order, error) {
	c, err := s.store.BeginCheckout(ctx, o, now, questionWithin(o, now, firstQuestion))
	if err != nil {
		return order.Order{}, query.ChangeError(err)
	}
	if c.ID == "" {
		c, err = openAndSave(ctx, s.pages, s.store, o, c)
		switch {
		case apierror.ReasonOf(err) == apierror.Conflict:
			s.log.WarnContext(ctx, "an order has no payment page", "order_sn", o.OrderSn, "err",
				err)
			return order.Order{}, err
		case err != nil:
			return order.Order{}, apierror.NewUnavailable(
				"the payment provider did not return a page", err,
			)
		}
	}
	o.CheckoutURL = c.URL
	return o, nil
}

// openAndSave opens the page of a checkout and records it. A refused attempt is over, so that the
// next one may ask with other parameters.
func openAndSave(
	ctx context.Context, pages Pages, store Store, o order.Order, c Checkout,
) (Checkout, error) {
	sale, err := store.Sale(ctx, o.GoodsID)
	if err != nil {
		return c, err
	}
	c.Currency = sale.Details.Currency
	opened, err := pages.Open(ctx, o, c)
	if err == nil && (opened.ID == "" || opened.URL == "") {
		err = fmt.Errorf("%w: its answer has no id or no URL", ErrRefused)
	}
	switch {
	case errors.Is(err, ErrRefused):
		return c, errors.Join(err, store.EndCheckout(ctx, c))
	case err != nil:
		return c, err
	}
	return opened, store.SaveCheckout(ctx, opened)
}

// Handle records a provider's verified event. A repeated event changes nothing, and events may
// arrive in any order. It returns the receipt of an event with a payment. Its errors are those of
// Receive; the provider must send the event again after one.
func (s *Service) Handle(ctx context.Context, e Event) (r Receipt, err error) {
	switch {
	case e.Payment != nil:
		r, err = s.Receive(ctx, *e.Payment)
		if err == nil && e.Checkout != nil {
			err = s.store.EndCheckout(ctx, *e.Checkout)
		}
	case e.Reversal != nil:
		err = s.reverse(ctx, e)
	case e.Checkout != nil:
		now, clockErr := s.store.Now(ctx)
		if err = clockErr; err == nil {
			err = s.store.HastenCheckout(ctx, e.Checkout.GoodsID, e.Checkout.OrderSn, now)
		}
	}
	return r, query.ChangeError(err)
}

// reverse records a refund or a dispute. If the whole payment went back, by the merchant at the
// provider or by a lost dispute, it cancels the order. The report of such a payment may still be on
// its way; the order would keep money that it does not have.
func (s *Service) reverse(ctx context.Context, e Event) error {
	s.log.InfoContext(ctx, "payment reversal reported", "kind", e.Reversal.Kind,
		"reversal_id", e.Reversal.ID, "payment_id", e.Reversal.PaymentID,
		"order_sn", e.Reversal.OrderSn, "state", e.Reversal.State)
	now, err := s.store.Now(ctx)
	if err == nil {
		err = s.store.RecordReversal(ctx, *e.Reversal, now)
	}
	if err != nil || e.Returned == nil {
		return err
	}
	reason := RefundByMerchant
	if e.Reversal.Kind == ReversalDispute {
		reason = RefundDispute
	}
	err = s.cancelReturned(ctx, e, reason)
	if errors.Is(err, ErrNoSuchPayment) {
		if _, err = s.Receive(ctx, *e.Returned); err == nil {
			err = s.cancelReturned(ctx, e, reason)
		}
	}
	return err
}

func (s *Service) cancelReturned(
	ctx context.Context, e Event, reason RefundReason,
) (err error) {
	var done Cancellation
	err = order.Change(ctx, s.store, func(ctx context.Context, now time.Time) error {
		done, err = s.store.CancelReturned(ctx, *e.Returned, e.Refunds, reason, now)
		return err
	})
	_, err = s.cancelled(ctx, done, err)
	return err
}

// hasten makes the poller end the page of a cancelled order at once. Without it the poller does so
// at the next question. The page counts as due for long, because buyers may cancel by the thousand.
// DueCheckouts lists half of many due pages by the newest, for questions at the end of a time to
// pay.
func (s *Service) hasten(ctx context.Context, o order.Order) {
	if s.pages == nil || o.CheckoutURL == "" || o.Status != order.Cancelled {
		return
	}
	due := o.ClosedAt.Add(-PollPauseMax)
	err := s.store.HastenCheckout(ctx, o.GoodsID, o.OrderSn, due)
	if err != nil {
		s.log.WarnContext(ctx, "cannot hasten the end of a payment page", "order_sn", o.OrderSn,
			"err", err)
	}
}
