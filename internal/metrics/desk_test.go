package metrics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestEveryVerdictIsCounted: one without a place of its own would end the program at the first buyer who is told it.
func TestEveryVerdictIsCounted(t *testing.T) {
	d := New("test").newDesk()
	for code := range seckill.NumVerdicts {
		require.NotEmpty(t, verdictNames[code], "verdict %d", code)
		d.Reserved(1, []seckill.Verdict{{Code: seckill.VerdictCode(code)}}, time.Millisecond, nil)
	}
}
