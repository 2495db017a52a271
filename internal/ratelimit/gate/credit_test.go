package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
)

// keepsRefunds is a Redis that stops between a decision and a refund.
type keepsRefunds struct{ *ratelimit.Memory }

// Refund ends with its deadline.
func (keepsRefunds) Refund(ctx context.Context, _ ratelimit.Decision, _ ratelimit.Request) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestCredit_EndsWithTheDeadline(t *testing.T) {
	b := book(t, `{rules: [{name: r, by: [goods], permitsPerSecond: 9, onError: open}]}`)
	g := newGate(t, b, keepsRefunds{ratelimit.NewMemory(nil)}, gate.Options{Deadline: 100 * ms})
	rule, request := requestOf(t, b)
	patient, leave := context.WithTimeout(t.Context(), 10*time.Second)
	defer leave()
	_, err := g.Credit(patient, rule, request)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, patient.Err(), "the caller would have waited")
}
