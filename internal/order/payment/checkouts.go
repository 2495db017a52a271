package payment

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// openPage returns a payable order with the page where its buyer pays. The checkout is recorded
// before the provider is asked, so that the poller finds a page whose answer got lost.
func (s *Service) openPage(ctx context.Context, o order.Order, now time.Time) (order.Order, error) {
	ask := now.Add(firstQuestion)
	if end := o.PayBy.Add(afterPayBy); end.Before(ask) {
		ask = end
	}
	c, err := s.store.BeginCheckout(ctx, o, now, ask)
	if err != nil {
		return order.Order{}, query.ChangeError(err)
	}
	if c.ID == "" {
		if c, err = openAndSave(ctx, s.pages, s.store, o, c); err != nil {
			return order.Order{}, seckill.NewUnavailable(
				"the payment provider did not return a page; try again", err,
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
		r, err = s.receiveReported(ctx, *e.Payment)
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
		if _, err = s.receiveReported(ctx, *e.Returned); err == nil {
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
// at the next question.
func (s *Service) hasten(ctx context.Context, o order.Order) {
	if s.pages == nil || o.CheckoutURL == "" {
		return
	}
	err := s.store.HastenCheckout(ctx, o.GoodsID, o.OrderSn, o.ClosedAt)
	if err != nil {
		s.log.WarnContext(ctx, "can't hasten the end of a payment page", "order_sn", o.OrderSn,
			"err", err)
	}
}

// Poller asks the provider about pages without an answer: the answer or the webhook got lost, or
// the order ended and its page must not take money. Any number of pollers may run, because one of
// them claims each question.
type Poller struct {
	Store Store
	Pages Pages
	Log   *slog.Logger
}

const (
	pollEvery = time.Second
	pollChunk = 50 // pages in one read; few are asked about at a time
	// firstQuestion is when a new page is asked about, or the end of the time to pay. Most buyers
	// have paid by then, and the webhook has ended their page.
	firstQuestion = time.Minute
	// pollPause is the pause after the first question. It doubles up to PollPauseMax.
	pollPause = 30 * time.Second
	// afterPayBy is how long after payBy the page of an unpaid order is ended.
	afterPayBy = time.Second
)

// PollPauseMax is the longest time from one question about a page to the next, and to the first.
const PollPauseMax = 10 * time.Minute

// Run asks until ctx ends.
func (p *Poller) Run(ctx context.Context) error {
	return workers.Every(ctx, pollEvery, p.runOnce)
}

// runOnce asks about all pages that are due. It stops when it could claim none of those that it has
// read: they would be read again at once.
func (p *Poller) runOnce(ctx context.Context) {
	for ctx.Err() == nil {
		now, err := p.Store.Now(ctx)
		var due []Checkout
		if err == nil {
			due, err = p.Store.DueCheckouts(ctx, now, pollChunk)
		}
		if err != nil {
			if ctx.Err() == nil {
				p.Log.WarnContext(ctx, "can't read payment pages, will retry", "err", err)
			}
			return
		}
		if p.askAll(ctx, due) == 0 || len(due) < pollChunk {
			return
		}
	}
}

// askAll asks about pages, in an order of this process' own: other pollers have read the same
// pages. It returns how many questions it has claimed.
func (p *Poller) askAll(ctx context.Context, due []Checkout) int64 {
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	var claims atomic.Int64
	workers.Each(ctx, due, func(ctx context.Context, c Checkout) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), providerDeadline)
		defer cancel()
		o, now, claimed, err := p.claim(ctx, c)
		if claimed {
			claims.Add(1)
			err = p.ask(ctx, o, c, now)
		}
		if err != nil {
			p.Log.WarnContext(ctx, "payment page not settled, will retry", "order_sn", c.OrderSn,
				"checkout_id", c.ID, "asked", c.Asked+1, "err", err)
		}
	})
	return claims.Load()
}

// claim reads the order of a page and postpones the next question about it.
func (p *Poller) claim(
	ctx context.Context, c Checkout,
) (o order.Order, now time.Time, claimed bool, err error) {
	if now, err = p.Store.Now(ctx); err != nil {
		return o, now, false, err
	}
	if o, err = p.order(ctx, c); err != nil {
		return o, now, false, err
	}
	claimed, err = p.Store.ClaimCheckout(ctx, c, nextQuestion(o, c, now))
	return o, now, claimed && err == nil, err
}

// ask makes one claimed question and acts on the answer.
func (p *Poller) ask(ctx context.Context, o order.Order, c Checkout, now time.Time) (err error) {
	if c.ID == "" {
		// The answer got lost. The same question returns the same page, also for an order that has
		// ended: then the page is ended below.
		if c, err = openAndSave(ctx, p.Pages, p.Store, o, c); err != nil {
			return err
		}
	}
	answer, err := p.Pages.Ask(ctx, c)
	if err != nil {
		return err
	}
	switch answer.State {
	case PagePaid:
		err = p.receive(ctx, answer.Payment, now)
	case PageOpen:
		if RefundReasonFor(o, now) == "" {
			return nil
		}
		err = p.Pages.End(ctx, c)
	case PageProcessing:
		return nil
	case PageEnded:
	}
	if err != nil {
		return err
	}
	return p.Store.EndCheckout(ctx, c)
}

// nextQuestion returns when to ask again: at the end of the time to pay at the latest, because an
// unpaid page ends then.
func nextQuestion(o order.Order, c Checkout, now time.Time) time.Time {
	next := now.Add(min(pollPause<<min(c.Asked, 10), PollPauseMax))
	if end := o.PayBy.Add(afterPayBy); now.Before(end) && end.Before(next) {
		return end
	}
	return next
}

// order returns the order of a checkout. Orders are never deleted.
func (p *Poller) order(ctx context.Context, c Checkout) (order.Order, error) {
	found, err := p.Store.OrdersByNumber(ctx, c.GoodsID, []string{c.OrderSn})
	if err == nil && len(found) == 0 {
		err = order.ErrNoSuchOrder
	}
	if err != nil {
		return order.Order{}, err
	}
	return found[0], nil
}

// receive records a payment whose webhook got lost. It repeats a transaction that failed at once,
// and at the same time: the next question may be after the end of the time to pay.
func (p *Poller) receive(ctx context.Context, paid Payment, now time.Time) error {
	var receipts []Receipt
	err := order.RetryTransaction(ctx, func() (err error) {
		receipts, err = p.Store.Receive(ctx, paid.GoodsID, []Payment{paid}, now)
		return err
	})
	if err != nil {
		return err
	}
	r := receipts[0]
	if r.Err == nil {
		p.Log.InfoContext(ctx, "payment found by asking the provider", "payment_id", paid.ID,
			"order_sn", paid.OrderSn, "state", r.State, "reason", r.Reason)
	}
	return r.Err
}

// receiveReported is Receive for any payment. The goods id is the order's; a provider may report it
// too, and then it must be the same.
func (s *Service) receiveReported(ctx context.Context, p Payment) (Receipt, error) {
	o, err := s.orders.FindChangeableByNumber(ctx, p.OrderSn)
	if err == nil && p.GoodsID != 0 && o.GoodsID != p.GoodsID {
		err = query.NewNoSuchOrder()
	}
	p.GoodsID = o.GoodsID
	var r Receipt
	if err == nil {
		if r, err = s.receive(ctx, p); err == nil {
			return r, nil
		}
	}
	if o.Status != order.Queued && seckill.ReasonOf(err) != seckill.Unavailable {
		s.log.WarnContext(ctx, "payment refused", "payment_id", p.ID, "order_sn", p.OrderSn,
			"amount", p.Amount, "currency", p.Currency, "err", err)
	}
	return Receipt{}, err
}
