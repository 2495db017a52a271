package ratelimit_test

import (
	"encoding/json"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// FuzzLimit checks that validation rejects a limit by field, or the limiter keeps its bounds. An
// accepted limit never admits more than its quota at one moment. It never reports a negative time.
func FuzzLimit(f *testing.F) {
	f.Add(
		[]byte(
			`{"algorithm": "reserve", "permitsPerSecond": 1000, "maxBurstSeconds": 1, "maxWaitMillis": 1000}`), int64(1))
	f.Add([]byte(`{"algorithm": "sliding_window", "limit": 5, "intervalSeconds": 0.5}`), int64(3))
	f.Add([]byte(`{"algorithm": "nginx", "permitsPerSecond": 0.3, "burst": 999999999, "delay": 7}`),
		int64(9000))
	f.Add(
		[]byte(
			`{"algorithm": "smooth_warming_up", "permitsPerSecond": 5, "warmupSeconds": 4, "coldFactor": 3}`), int64(2))
	f.Add([]byte(`{"algorithm": "sub_windows", "limit": 5, "intervalSeconds": 1, "parts": 10}`),
		int64(2))
	f.Fuzz(func(t *testing.T, text []byte, n int64) {
		var l ratelimit.Limit
		if json.Unmarshal(text, &l) != nil {
			return
		}
		if l.Validate() != nil || n < 1 {
			return
		}
		clock := testclock.New()
		local := newLocal(t, l, clock)
		for _, step := range []time.Duration{0, us, time.Second, time.Hour, -time.Minute} {
			clock.Add(step)
			d := local.take(n, anyWait)
			if d.Wait < 0 || d.RetryAfter < 0 || d.ResetAfter < 0 || d.Remaining < 0 {
				t.Fatalf("%+v of %+v", d, l)
			}
			if d.Allowed != (d.Granted == n) || d.Never && d.Allowed || !d.Allowed && !d.Never &&
				d.RetryAfter == 0 {
				t.Fatalf("%+v of %+v", d, l)
			}
		}
	})
}
