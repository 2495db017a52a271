package faults

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// clockHarms have the clocks of all API hosts be five minutes off, in a rush that begins before the sale and goes on after
// it: only those who come while it is on, by Redis' clock, may have anything.
func clockHarms() []harm {
	off := func(name string, by time.Duration) harm {
		return harm{
			name: name, clock: by, over: 12 * time.Second, starts: 4 * time.Second, ends: 8 * time.Second, after: onlyInTheWindow,
			do: func(_ *testing.T, s *scene) { s.until(1) },
		}
	}
	return []harm{off("clock-ahead", 5*time.Minute), off("clock-behind", -5*time.Minute)}
}

// requireClock wants an API to believe that it is so much later than it is, as its Date header tells.
func requireClock(t *testing.T, base string, off time.Duration) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/livez", http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	date, err := http.ParseTime(resp.Header.Get("Date"))
	require.NoError(t, err)
	require.InDelta(t, off.Seconds(), time.Until(date).Seconds(), 10, "the API's clock is not off")
}

// onlyInTheWindow wants buyers to have been too early, in time, and too late. That nobody won outside the window is the
// checker's, G6; and those who came well within it must not have been sent away as too early or too late.
func onlyInTheWindow(t *testing.T, s *scene, r buyer.Report) {
	t.Helper()
	told := make(map[string]int)
	for _, b := range r.Told {
		told[b.Reason]++
		refused := b.Began.Add(b.Bought)
		inside := b.Began.After(s.start) && refused.Before(s.end)
		if inside && (b.Reason == "NOT_STARTED" || b.Reason == "ENDED") {
			t.Errorf("buyer %d asked from %s to %s and was told %s", b.BuyerID, b.Began, refused, b.Reason)
		}
	}
	t.Logf("the buyers were told %v", told)
	require.Positive(t, told["NOT_STARTED"], "nobody came too early")
	require.Positive(t, told["QUEUED"], "nobody came in time")
	require.Positive(t, told["ENDED"], "nobody came too late")
}
