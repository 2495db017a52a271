package metrics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill/reservation"
)

// TestReservations_CountEveryVerdict checks that every verdict has a counter. Count panics without
// one.
func TestReservations_CountEveryVerdict(t *testing.T) {
	d := newRegistry("test").newReservations()
	for code := range reservation.NumVerdicts {
		require.NotEmpty(t, verdictNames[code], "verdict %d", code)
		d.Reserved(1, []reservation.Verdict{{Code: reservation.VerdictCode(code)}},
			time.Millisecond, nil)
	}
}
