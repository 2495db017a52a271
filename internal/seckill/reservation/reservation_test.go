package reservation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

func TestVerdict_ErrHasOneReasonPerCode(t *testing.T) {
	reasons := map[VerdictCode]seckill.Reason{
		Taken: "", Repeated: "", WrongPath: seckill.BadPath, TooEarly: seckill.NotStarted,
		TooLate: seckill.Ended, OverLimit: seckill.LimitReached, TooFew: seckill.SoldOut,
		Malformed: seckill.BadRequest, NotAdmitted: seckill.Waiting,
	}
	require.Len(t, reasons, NumVerdicts)
	for code, reason := range reasons {
		require.Equal(t, reason, seckill.ReasonOf(Verdict{Code: code}.Err()))
	}
}
