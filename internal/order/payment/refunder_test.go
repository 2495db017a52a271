package payment

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeRefund is a Store and a Provider of one refund.
type fakeRefund struct {
	Store
	Provider
	due, since time.Time
	attempts   int
	problem    string
	refunds    int  // refunds made by the provider
	refunded   bool // the store has recorded the refund
	down, lost bool // the provider is down; the store loses the mark
	claimed    bool // another refunder claims first
	slow       bool // the provider does not answer
	free       bool // the order costs nothing
}

func (f *fakeRefund) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (f *fakeRefund) DueRefunds(_ context.Context, now time.Time, _ int) ([]Refund, error) {
	if f.refunded || now.Before(f.due) || f.attempts > 0 && f.due.IsZero() {
		return nil, nil
	}
	p := Payment{ID: "p-1", Amount: 1999}
	if f.free {
		p.Amount = 0
	}
	return []Refund{{Payment: p, Attempts: f.attempts, Since: f.since}}, nil
}

func (f *fakeRefund) ClaimRefund(_ context.Context, r Refund, now time.Time) (bool, error) {
	if f.claimed || r.Attempts != f.attempts {
		return false, nil
	}
	if f.since.IsZero() {
		f.since = now
	}
	f.attempts, f.due = f.attempts+1, r.NextRefund(now)
	return true, nil
}

func (f *fakeRefund) RecordRefundProblem(
	ctx context.Context, _ Payment, _ time.Time, problem string,
) error {
	if ctx.Err() == nil {
		f.problem = problem
	}
	return ctx.Err()
}

func (f *fakeRefund) MarkRefunded(context.Context, Payment, time.Time) error {
	if f.lost {
		return errors.New("the database is down")
	}
	f.refunded = true
	return nil
}

func (f *fakeRefund) Refund(ctx context.Context, _ Payment) error {
	if f.slow {
		<-ctx.Done()
		return ctx.Err()
	}
	if f.down {
		return errors.New("the provider is down")
	}
	f.refunds++
	return nil
}

func (f *fakeRefund) refunder() *Refunder {
	return &Refunder{Store: f, Provider: f, Log: slog.New(slog.DiscardHandler)}
}

// TestRefunder_RetriesUntilRefunded checks that the refunder repeats a failed refund with growing
// waits of up to an hour, and stops after the first success.
func TestRefunder_RetriesUntilRefunded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRefund{down: true}
		r := f.refunder()
		for n := range 10 {
			r.runOnce(t.Context())
			wait := min(15*time.Second<<n, time.Hour)
			require.InDelta(t, float64(wait), float64(time.Until(f.due)), float64(wait)/5)
			tries := f.attempts
			time.Sleep(time.Until(f.due) - time.Millisecond)
			r.runOnce(t.Context())
			require.Equal(t, tries, f.attempts, "no attempt before its time")
			time.Sleep(time.Millisecond)
		}
		require.False(t, f.refunded)
		require.Equal(t, "the provider is down", f.problem)
		f.down = false
		for range 3 {
			r.runOnce(t.Context())
			time.Sleep(time.Hour)
		}
		require.True(t, f.refunded)
		require.Equal(t, 1, f.refunds)
	})
}

// TestRefunder_StopsAfterItsPeriod checks that the last attempt is as long after the first as the
// comment says, and that none follows.
func TestRefunder_StopsAfterItsPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRefund{down: true}
		var last time.Time
		for range 5 * 24 * 60 {
			before := f.attempts
			f.refunder().runOnce(t.Context())
			if f.attempts > before {
				last = time.Now()
			}
			time.Sleep(time.Minute)
		}
		require.Zero(t, f.due)
		require.GreaterOrEqual(t, last.Sub(f.since), RefundPeriod)
		require.Less(t, last.Sub(f.since), RefundPeriod+2*refundPauseMax)
	})
}

// TestRefunder_RepeatsAfterLostMark checks that the refunder repeats a refund if the store lost the
// mark of the first. A real provider recognises the repetition and refunds once.
func TestRefunder_RepeatsAfterLostMark(t *testing.T) {
	f := &fakeRefund{lost: true}
	f.refunder().runOnce(t.Context())
	require.False(t, f.refunded)
	f.lost, f.due = false, time.Now()
	f.refunder().runOnce(t.Context())
	require.True(t, f.refunded)
	require.Equal(t, 2, f.refunds)
}

// TestRefunder_RecordsThatTheProviderDoesNotAnswer checks that an operator reads why an attempt
// that took all its time has failed.
func TestRefunder_RecordsThatTheProviderDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRefund{slow: true}
		f.refunder().runOnce(t.Context())
		require.Equal(t, context.DeadlineExceeded.Error(), f.problem)
	})
}

// TestRefunder_FreeOrderNeedsNoProvider checks that a provider is not asked to return a payment of
// nothing, which it has never seen.
func TestRefunder_FreeOrderNeedsNoProvider(t *testing.T) {
	f := &fakeRefund{free: true, down: true}
	f.refunder().runOnce(t.Context())
	require.True(t, f.refunded)
}

// TestRefunder_SkipsAttemptOfAnother checks that a refunder makes no refund if another refunder has
// claimed the attempt.
func TestRefunder_SkipsAttemptOfAnother(t *testing.T) {
	f := &fakeRefund{claimed: true}
	f.refunder().runOnce(t.Context())
	require.Zero(t, f.refunds)
}
