package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// fakePages is a Store and a provider of pages that are all paid.
type fakePages struct {
	Store
	Pages

	mu    sync.Mutex
	due   map[string]bool // by order number; true: to be asked about
	kept  int
	fails int  // deadlocks until a payment is recorded
	down  bool // no claim succeeds
}

func (f *fakePages) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (f *fakePages) DueCheckouts(
	_ context.Context, _ time.Time, limit int,
) (all []Checkout, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sn, due := range f.due {
		if due && len(all) < limit {
			all = append(all, Checkout{GoodsID: 42, OrderSn: sn, ID: "cs_" + sn})
		}
	}
	return all, nil
}

func (f *fakePages) OrdersByNumber(
	_ context.Context, _ int64, orderSns []string,
) ([]order.Order, error) {
	o := order.Order{Status: order.Created, PayBy: time.Now().Add(time.Minute)}
	o.OrderSn = orderSns[0]
	return []order.Order{o}, nil
}

func (f *fakePages) ClaimCheckout(_ context.Context, c Checkout, _ time.Time) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return false, errors.New("the database is down")
	}
	f.due[c.OrderSn] = false
	return true, nil
}

func (f *fakePages) Ask(context.Context, Checkout) (Answer, error) {
	return Answer{State: PagePaid}, nil
}

func (f *fakePages) Receive(
	_ context.Context, goodsID int64, paid []Payment, _ time.Time,
) ([]Receipt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.due[paid[0].OrderSn]; !known || goodsID != 42 || paid[0].GoodsID != 42 {
		return nil, order.ErrNoSuchOrder
	}
	if f.fails > 0 {
		f.fails--
		return nil, order.ErrTryAgain
	}
	f.kept++
	return []Receipt{{State: Kept}}, nil
}

func (f *fakePages) EndCheckout(context.Context, Checkout) error { return nil }

// unknownPage is a page of a key that was replaced by one of another account or mode.
type unknownPage struct {
	*fakePages

	begun time.Time
	ended bool
}

func (p *unknownPage) DueCheckouts(context.Context, time.Time, int) ([]Checkout, error) {
	return []Checkout{{GoodsID: 42, OrderSn: "1", ID: "cs_1", BegunAt: p.begun}}, nil
}

func (p *unknownPage) Ask(context.Context, Checkout) (Answer, error) {
	return Answer{}, fmt.Errorf("read a page: %w", ErrNoSuchPage)
}

func (p *unknownPage) EndCheckout(context.Context, Checkout) error {
	p.ended = true
	return nil
}

// TestPoller_EndsAPageThatTheProviderDoesNotKnow checks that a page of a former key is not asked
// about for ever. A key that is wrong for hours, by mistake, ends no page that may be paid.
func TestPoller_EndsAPageThatTheProviderDoesNotKnow(t *testing.T) {
	for age, ended := range map[time.Duration]bool{
		24 * time.Hour: false, unknownAfter + time.Minute: true,
	} {
		asked := &fakePages{due: map[string]bool{}}
		p := &unknownPage{fakePages: asked, begun: time.Now().Add(-age)}
		(&Poller{Store: p, Pages: p, Log: slog.New(slog.DiscardHandler)}).runOnce(t.Context())
		require.Equal(t, ended, p.ended, age)
	}
}

// refusedQuestion is a page of which the provider answers no question.
type refusedQuestion struct {
	*fakePages

	left     time.Duration // of the time to pay
	hastened time.Duration // from the question to its repetition
}

func (r *refusedQuestion) OrdersByNumber(
	context.Context, int64, []string,
) ([]order.Order, error) {
	return []order.Order{{Status: order.Created, PayBy: time.Now().Add(r.left)}}, nil
}

func (r *refusedQuestion) Ask(context.Context, Checkout) (Answer, error) {
	return Answer{}, errors.New("answer 429")
}

func (r *refusedQuestion) HastenCheckout(
	_ context.Context, _ int64, _ string, at time.Time,
) error {
	r.hastened = time.Until(at)
	return nil
}

// TestPoller_RepeatsALastQuestionThatFailed checks that the last question before the end of the
// time to pay is repeated soon after a failure. A provider that limits requests refuses some of the
// questions about orders whose times to pay end together.
func TestPoller_RepeatsALastQuestionThatFailed(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		beforePayBy + time.Second: 0, // the next pause ends before the time to pay
		beforePayBy:               lastPause,
		lastPause + 1:             lastPause,
		lastPause:                 0, // too late
		-time.Hour:                0,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &refusedQuestion{
				fakePages: &fakePages{due: map[string]bool{"1": true}}, left: left,
			}
			(&Poller{Store: r, Pages: r, Log: slog.New(slog.DiscardHandler)}).runOnce(t.Context())
			require.Equal(t, want, r.hastened, left)
		})
	}
}

// asks runs one round of a poller on this many due pages.
func (f *fakePages) asks(t *testing.T, pages int) {
	f.due = map[string]bool{}
	for i := range pages {
		f.due[strconv.Itoa(i)] = true
	}
	p := &Poller{Store: f, Pages: f, Log: slog.New(slog.DiscardHandler)}
	p.runOnce(t.Context())
}

// TestPoller_RepeatsTheRecordOfAPayment checks that a deadlock does not postpone the record to the
// end of the time to pay: the payment would be refunded then.
func TestPoller_RepeatsTheRecordOfAPayment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePages{fails: 2}
		f.asks(t, 1)
		require.Equal(t, 1, f.kept)
	})
}

// TestPoller_AsksAboutAllDuePages checks that a round ends when no page is due, and also if no
// question can be claimed.
func TestPoller_AsksAboutAllDuePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePages{}
		f.asks(t, 2*pollChunk+1)
		require.Equal(t, 2*pollChunk+1, f.kept)
		f = &fakePages{down: true}
		f.asks(t, pollChunk)
		require.Zero(t, f.kept)
	})
}

// slowPages are pages of a provider that answers after 5 s.
type slowPages struct{ *fakePages }

func (p slowPages) Ask(ctx context.Context, c Checkout) (Answer, error) {
	time.Sleep(5 * time.Second)
	return p.fakePages.Ask(ctx, c)
}

// TestPoller_SlowProviderDelaysFewQuestions checks that payments whose times to pay end together
// are recorded before that end, although each answer takes seconds.
func TestPoller_SlowProviderDelaysFewQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePages{due: map[string]bool{}}
		for i := range 2 * pollChunk {
			f.due[strconv.Itoa(i)] = true
		}
		began := time.Now()
		(&Poller{
			Store: f, Pages: slowPages{f}, Log: slog.New(slog.DiscardHandler),
		}).runOnce(t.Context())
		require.Equal(t, 2*pollChunk, f.kept)
		require.Less(t, time.Since(began), beforePayBy)
	})
}

// cancelledPage is an open page whose buyer cancels after a poller has read the order, and before
// it claims the question. The cancellation finds the page due and can't hasten its question.
type cancelledPage struct {
	*fakePages

	status order.Status
	ended  bool
}

func (p *cancelledPage) OrdersByNumber(
	ctx context.Context, goodsID int64, orderSns []string,
) ([]order.Order, error) {
	found, err := p.fakePages.OrdersByNumber(ctx, goodsID, orderSns)
	found[0].Status = p.status
	return found, err
}

func (p *cancelledPage) ClaimCheckout(
	ctx context.Context, c Checkout, next time.Time,
) (bool, error) {
	p.status = order.Cancelled
	return p.fakePages.ClaimCheckout(ctx, c, next)
}

func (p *cancelledPage) Ask(context.Context, Checkout) (Answer, error) {
	return Answer{State: PageOpen}, nil
}

func (p *cancelledPage) End(context.Context, Checkout) error {
	p.ended = true
	return nil
}

// TestPoller_EndsThePageOfAnOrderCancelledBeforeTheClaim checks that the page does not take money
// until the next question, which may be 10 minutes later.
func TestPoller_EndsThePageOfAnOrderCancelledBeforeTheClaim(t *testing.T) {
	due := &fakePages{due: map[string]bool{"1": true}}
	p := &cancelledPage{fakePages: due, status: order.Created}
	(&Poller{Store: p, Pages: p, Log: slog.New(slog.DiscardHandler)}).runOnce(t.Context())
	require.True(t, p.ended)
}

// begunPages is a Store that begins checkouts, and a provider that refuses to make their pages.
type begunPages struct {
	Store
	Pages

	ask             time.Time
	page            *Checkout // that the provider answers; nil: it refuses
	ended, hastened []string  // order numbers
	due             time.Time // of the last one hastened
}

func (b *begunPages) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (b *begunPages) Sale(context.Context, int64) (seckill.Sale, error) {
	return seckill.Sale{}, nil
}

func (b *begunPages) BeginCheckout(
	_ context.Context, o order.Order, now, ask time.Time,
) (Checkout, error) {
	b.ask = ask
	return Checkout{OrderSn: o.OrderSn, Attempt: 1, BegunAt: now}, nil
}

func (b *begunPages) EndCheckout(_ context.Context, c Checkout) error {
	b.ended = append(b.ended, c.OrderSn)
	return nil
}

func (b *begunPages) HastenCheckout(_ context.Context, _ int64, sn string, due time.Time) error {
	b.hastened, b.due = append(b.hastened, sn), due
	return nil
}

func (b *begunPages) Open(context.Context, order.Order, Checkout) (Checkout, error) {
	if b.page != nil {
		return *b.page, nil
	}
	return Checkout{}, ErrRefused
}

func (b *begunPages) SaveCheckout(context.Context, Checkout) error { return nil }

func (b *begunPages) Refund(context.Context, Payment) error { return nil }

// TestOpenPage_RefusedAttemptIsOver checks that an attempt ends for which the provider makes no
// page, and when the first question is due: after a minute, or before the time to pay ends.
func TestOpenPage_RefusedAttemptIsOver(t *testing.T) {
	b, now := &begunPages{}, time.Now()
	s := NewService(nil, b, nil, b, slog.New(slog.DiscardHandler))
	for left, ask := range map[time.Duration]time.Duration{
		time.Hour: firstQuestion, time.Minute: time.Minute - beforePayBy,
		beforePayBy: beforePayBy + afterPayBy,
	} {
		o := order.Order{PayBy: now.Add(left)}
		o.OrderSn = left.String()
		_, err := s.openPage(t.Context(), o, now)
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
		require.Equal(t, ask, b.ask.Sub(now))
		require.Contains(t, b.ended, o.OrderSn)
	}
}

// TestOpenPage_AnswerWithoutAPageIsARefusal checks that the next attempt follows an answer without
// an id or a URL. If it were kept, the buyer could not pay until it ends.
func TestOpenPage_AnswerWithoutAPageIsARefusal(t *testing.T) {
	for _, page := range []Checkout{{}, {ID: "cs_1"}, {URL: "https://pay.example/cs_1"}} {
		b, now := &begunPages{page: &page}, time.Now()
		s := NewService(nil, b, nil, b, slog.New(slog.DiscardHandler))
		o := order.Order{PayBy: now.Add(time.Hour)}
		_, err := s.openPage(t.Context(), o, now)
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
		require.Len(t, b.ended, 1)
	}
}

// TestHandle_ChangedPageIsAskedAbout checks that an event of a page without a payment makes the
// question about it due.
func TestHandle_ChangedPageIsAskedAbout(t *testing.T) {
	b := &begunPages{}
	s := NewService(nil, b, nil, b, slog.New(slog.DiscardHandler))
	_, err := s.Handle(t.Context(), Event{Checkout: &Checkout{OrderSn: "o-1", ID: "cs_1"}})
	require.NoError(t, err)
	require.Equal(t, []string{"o-1"}, b.hastened)
}

// TestCancelled_PageIsEndedBehindLastQuestions checks that the page of a cancelled order is due for
// longer than any question before the end of a time to pay. Where many are due, half of those that
// the poller reads are the newest: thousands of buyers who cancel at once must not fill that half.
func TestCancelled_PageIsEndedBehindLastQuestions(t *testing.T) {
	b, now := &begunPages{}, time.Now()
	s := NewService(nil, b, nil, b, slog.New(slog.DiscardHandler))
	o := order.Order{
		Status: order.Cancelled, ClosedAt: now, CheckoutURL: "https://pay.example/cs_1",
	}
	o.OrderSn = "o-1"
	must.Get(s.cancelled(t.Context(), Cancellation{Order: o}, nil))(t)
	require.Equal(t, []string{"o-1"}, b.hastened)
	require.LessOrEqual(t, b.due, now.Add(-beforePayBy))
}

// TestNextQuestion_PausesUntilTheEndOfTheTimeToPay checks that pauses double up to ten minutes. A
// page is asked about before the time to pay ends, so that a payment without a webhook is kept. It
// is asked about again a second after that time, so that it takes no more money.
func TestNextQuestion_PausesUntilTheEndOfTheTimeToPay(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		asked      int
		left, want time.Duration // from now to payBy, and to the next question
	}{
		{0, time.Hour, 30 * time.Second},
		{1, time.Hour, time.Minute},
		{4, time.Hour, 8 * time.Minute},
		{5, time.Hour, PollPauseMax},
		{1000, time.Hour, PollPauseMax},
		{5, time.Minute, time.Minute - beforePayBy},
		{5, beforePayBy, beforePayBy + afterPayBy},
		{0, 29 * time.Second, 29*time.Second - beforePayBy},
		{0, 0, afterPayBy},
		{0, -afterPayBy, 30 * time.Second},
		{5, -time.Hour, PollPauseMax},
	} {
		next := nextQuestion(order.Order{PayBy: now.Add(c.left)}, Checkout{Asked: c.asked}, now)
		require.Equal(t, c.want, next.Sub(now), c)
	}
}
