package payment

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/workers"
)

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
	pollChunk = 50 // pages in one read, which are asked about together
	// questionPause is the time between two questions of one process. A provider that answers in
	// seconds must not delay the questions behind it beyond their PayBy. A fast one limits the
	// requests of a second.
	questionPause = 20 * time.Millisecond
	// firstQuestion is the age at which a new page is asked about; earlier if the time to pay ends
	// soon. Most buyers have paid by then, and the webhook has ended their page.
	firstQuestion = time.Minute
	// pollPause is the pause after the first question. It doubles up to PollPauseMax.
	pollPause = 30 * time.Second
	// unknownAfter is the age at which the poller gives up a page that the provider does not know.
	// Pages are open for a day at most, and an operator notices a wrong key within a week.
	unknownAfter = 7 * 24 * time.Hour
	// beforePayBy is how long before its PayBy the poller asks about a page once more. It must
	// record a payment whose webhook is late by then, because the order expires at PayBy.
	beforePayBy = 15 * time.Second
	// lastPause is the pause before a question that failed in that time is repeated: many times to
	// pay may end at once, and the provider limits the requests of a second.
	lastPause = 2 * time.Second
	// afterPayBy is how long after its PayBy the poller ends the page of an unpaid order.
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
			workers.Warn(ctx, p.Log, "cannot read payment pages, retrying", err)
			return
		}
		if p.askAll(ctx, due) == 0 || len(due) < pollChunk {
			return
		}
	}
}

// askAll asks about pages, in an order of this process' own: other pollers have read the same
// pages. It returns how many questions it has claimed.
func (p *Poller) askAll(ctx context.Context, due []Checkout) (claims int) {
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	var questions sync.WaitGroup
	defer questions.Wait()
	for _, c := range due {
		if ctx.Err() != nil {
			break
		}
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), providerDeadline)
		o, now, claimed, err := p.claim(asking, c)
		if !claimed {
			cancel()
			p.warn(ctx, c, err)
			continue
		}
		claims++
		questions.Go(func() {
			defer cancel()
			err := p.ask(asking, o, c, now)
			if err != nil {
				err = errors.Join(err, p.repeatLast(asking, o, now))
			}
			p.warn(ctx, c, err)
		})
		workers.Sleep(ctx, questionPause)
	}
	return claims
}

// warn logs why a page could not be settled.
func (p *Poller) warn(ctx context.Context, c Checkout, err error) {
	if err != nil {
		p.Log.WarnContext(ctx, "cannot settle a payment page, retrying", "order_sn", c.OrderSn,
			"checkout_id", c.ID, "asked", c.Asked+1, "err", err)
	}
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

// repeatLast makes the question of a moment that failed due again if it was the last one before the
// order's PayBy. The next one would be after it, when the order has expired.
func (p *Poller) repeatLast(ctx context.Context, o order.Order, asked time.Time) error {
	next := asked.Add(lastPause)
	if asked.Before(o.PayBy.Add(-beforePayBy)) || !next.Before(o.PayBy) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordDeadline)
	defer cancel()
	return p.Store.HastenCheckout(ctx, o.GoodsID, o.OrderSn, next)
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
	if errors.Is(err, ErrNoSuchPage) && now.Sub(c.BegunAt) >= unknownAfter {
		p.Log.ErrorContext(ctx, "the payment provider does not know a page, gave up",
			"order_sn", c.OrderSn, "checkout_id", c.ID, "err", err)
		return p.Store.EndCheckout(ctx, c)
	}
	if err != nil {
		return err
	}
	switch answer.State {
	case PagePaid:
		paid := answer.Payment
		paid.GoodsID, paid.OrderSn = c.GoodsID, c.OrderSn // the provider may know no goods id
		err = p.receive(ctx, paid, now)
	case PageOpen:
		// A cancellation after the first read and before the claim could not hasten a question that
		// was due.
		if o, err = p.order(ctx, c); err != nil || RefundReasonFor(o, now) == "" {
			return err
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

// nextQuestion returns when to ask again.
func nextQuestion(o order.Order, c Checkout, now time.Time) time.Time {
	return questionWithin(o, now, min(pollPause<<min(c.Asked, 10), PollPauseMax))
}

// questionWithin returns the end of a pause, or the time of an earlier question: the last one in
// which a payment is in time, or the first one after the time to pay, when an unpaid page ends.
func questionWithin(o order.Order, now time.Time, pause time.Duration) time.Time {
	next := now.Add(pause)
	for _, at := range []time.Time{o.PayBy.Add(-beforePayBy), o.PayBy.Add(afterPayBy)} {
		if now.Before(at) && at.Before(next) {
			return at
		}
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
