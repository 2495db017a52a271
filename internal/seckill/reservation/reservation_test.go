package reservation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
)

func TestVerdict_ErrHasOneReasonPerCode(t *testing.T) {
	reasons := map[VerdictCode]apierror.Reason{
		Taken: "", Repeated: "", WrongPath: apierror.BadPath, TooEarly: apierror.NotStarted,
		TooLate: apierror.Ended, OverLimit: apierror.LimitReached, TooFew: apierror.SoldOut,
		Malformed: apierror.BadRequest, NotAdmitted: apierror.Waiting,
	}
	require.Len(t, reasons, NumVerdicts)
	for code, reason := range reasons {
		require.Equal(t, reason, apierror.ReasonOf(Verdict{Code: code}.Err()))
	}
}
