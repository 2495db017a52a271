package payment

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
)

// till is a RefundStore and a Provider of one refund, with a clock of its own.
type till struct {
	now          time.Time
	due          time.Time
	attempts     int
	given        int  // by the provider
	refunded     bool // as far as is kept
	away, forget bool // the provider is away; the mark gets lost
	stolen       bool // another refunder is quicker
}

func (f *till) DueRefunds(_ context.Context, now time.Time, _ int) ([]Refund, error) {
	if f.refunded || now.Before(f.due) {
		return nil, nil
	}
	return []Refund{{Payment: Payment{ID: "p-1"}, Attempts: f.attempts}}, nil
}

func (f *till) ClaimRefund(_ context.Context, r Refund, next time.Time) (bool, error) {
	if f.stolen || r.Attempts != f.attempts {
		return false, nil
	}
	f.attempts, f.due = f.attempts+1, next
	return true, nil
}

func (f *till) MarkRefunded(context.Context, Payment, time.Time) error {
	if f.forget {
		return errors.New("the database is away")
	}
	f.refunded = true
	return nil
}

func (f *till) Charge(context.Context, order.Order) (Payment, error) {
	return Payment{}, errors.New("no")
}

func (f *till) Refund(context.Context, Payment) error {
	if f.away {
		return errors.New("the bank is away")
	}
	f.given++
	return nil
}

func refunderOf(f *till) *Refunder {
	r := NewRefunder(f, f, slog.New(slog.DiscardHandler))
	r.now = func() time.Time { return f.now }
	return r
}

func TestARefundIsTriedUntilItIsGiven(t *testing.T) {
	f := &till{now: time.Unix(1000, 0), away: true}
	r := refunderOf(f)
	var waits []time.Duration
	for range 8 {
		r.runOnce(t.Context())
		waits = append(waits, f.due.Sub(f.now))
		tries := f.attempts
		f.now = f.due.Add(-time.Millisecond)
		r.runOnce(t.Context())
		require.Equal(t, tries, f.attempts, "not before its time")
		f.now = f.due
	}
	require.Equal(t, []time.Duration{
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute,
	}, waits)
	require.False(t, f.refunded)
	f.away = false
	for range 3 {
		r.runOnce(t.Context())
		f.now = f.now.Add(time.Hour)
	}
	require.True(t, f.refunded)
	require.Equal(t, 1, f.given)
}

// Who can't keep that it was given asks again: the provider gives the same refund.
func TestAMarkThatIsLostIsMadeLater(t *testing.T) {
	f := &till{now: time.Unix(1000, 0), forget: true}
	r := refunderOf(f)
	r.runOnce(t.Context())
	require.False(t, f.refunded)
	f.forget, f.now = false, f.due
	r.runOnce(t.Context())
	require.True(t, f.refunded)
	require.Equal(t, 2, f.given)
}

func TestATryThatIsAnothersIsLeft(t *testing.T) {
	f := &till{now: time.Unix(1000, 0), stolen: true}
	refunderOf(f).runOnce(t.Context())
	require.Zero(t, f.given)
}
