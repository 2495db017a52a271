package metrics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill/reservation"
)

// TestReservations_CountEveryVerdict: a verdict without a counter would panic at its first buyer.
func TestReservations_CountEveryVerdict(t *testing.T) {
	d := New("test").newReservations()
	for code := range reservation.NumVerdicts {
		require.NotEmpty(t, verdictNames[code], "verdict %d", code)
		d.Reserved(1, []reservation.Verdict{{Code: reservation.VerdictCode(code)}},
			time.Millisecond, nil)
	}
}
