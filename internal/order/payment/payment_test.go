package payment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRefund_ClockSetBackEndsTheAttempt checks that an operator can settle a refund that has
// stopped, although the database's clock is behind its last attempt. A small step back does not end
// an attempt.
func TestRefund_ClockSetBackEndsTheAttempt(t *testing.T) {
	now := time.Now()
	for tried, inProgress := range map[time.Duration]bool{
		-attemptTime: false, -time.Second: true, time.Second: true, time.Hour: false,
	} {
		require.Equal(t, inProgress, Refund{TriedAt: now.Add(tried)}.InProgress(now), tried)
	}
	next := Refund{TriedAt: now.Add(time.Hour), NextAt: now.Add(2 * time.Hour)}
	require.True(t, next.InProgress(now), "the refunder tries it again at once")
}
