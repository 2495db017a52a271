package reservation

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

func TestVerdict_ErrHasOneReasonPerCode(t *testing.T) {
	reasons := map[VerdictCode]seckill.Reason{
		Taken: "", Repeated: "", WrongPath: seckill.BadPath, TooEarly: seckill.NotStarted,
		TooLate: seckill.Ended, OverLimit: seckill.LimitReached, TooFew: seckill.SoldOut,
		Malformed: seckill.BadRequest,
	}
	require.Len(t, reasons, NumVerdicts)
	for code, reason := range reasons {
		require.Equal(t, reason, seckill.ReasonOf(Verdict{Code: code}.Err()))
	}
}

// FuzzCheckPath compares CheckPath with a regular expression.
func FuzzCheckPath(f *testing.F) {
	good := strings.Repeat("0a", 16)
	for _, path := range []string{
		"", good, good[1:], good + "0", strings.ToUpper(good), good[:31] + "g", good[:30] + "é",
		good[:31] + "\n",
	} {
		f.Add(path)
	}
	like := regexp.MustCompile(`\A[0-9a-f]{32}\z`)
	f.Fuzz(func(t *testing.T, path string) {
		require.Equal(t, like.MatchString(path), CheckPath(path) == nil)
	})
}
