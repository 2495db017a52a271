package faults

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/must"
)

// clockFaults set the clocks of all API hosts five minutes off. Buyers arrive before, during and
// after the sale. Redis' clock alone decides which of them are in time.
func clockFaults() []fault {
	off := func(name string, by time.Duration) fault {
		return fault{
			name: name, clockOffset: by, spread: 12 * time.Second,
			starts: 4 * time.Second, ends: 8 * time.Second, checkReport: requireSaleWindow,
			inject: func(_ *testing.T, r *run) { r.untilPromised(1) },
		}
	}
	return []fault{off("clock-ahead", 5*time.Minute), off("clock-behind", -5*time.Minute)}
}

// requireClock requires the Date header of an API to be off by a duration.
func requireClock(t *testing.T, base string, off time.Duration) {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/livez",
		http.NoBody))(t)
	resp := must.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	date := must.Get(http.ParseTime(resp.Header.Get("Date")))(t)
	require.InDelta(t, off.Seconds(), time.Until(date).Seconds(), 10, "the API's clock is not off")
}

// requireSaleWindow requires three kinds of answers: too early, promised and too late. A buyer well
// within the window must not be refused for the time. The checker's G6 finds promises outside the
// window.
func requireSaleWindow(t *testing.T, r *run, report buyers.Report) {
	t.Helper()
	reasons := make(map[string]int)
	for _, b := range report.Results {
		reasons[b.Reason]++
		refused := b.Started.Add(b.DecisionTime)
		inside := b.Started.After(r.start) && refused.Before(r.end)
		if inside && (b.Reason == "NOT_STARTED" || b.Reason == "ENDED") {
			t.Errorf("buyer %d asked from %s to %s, and the answer was %s",
				b.BuyerID, b.Started, refused, b.Reason)
		}
	}
	t.Logf("reasons of the last answers: %v", reasons)
	for _, reason := range []string{"NOT_STARTED", "QUEUED", "ENDED"} {
		require.Positive(t, reasons[reason], "no answer was %s", reason)
	}
}
