package ratelimit_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
)

// FuzzParseRules: any text is rules that can be used, or an error.
func FuzzParseRules(f *testing.F) {
	example, err := os.ReadFile("../../deploy/ratelimit.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(hotRule))
	f.Add([]byte("rules: [{name: a, permitsPerSecond: 1e-9, maxWait: -1s}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rules, err := ratelimit.ParseRules(text)
		if err != nil {
			return
		}
		if _, err := ratelimit.NewRulebook(rules...); err != nil {
			t.Fatalf("rules that were read do not make a book: %v", err)
		}
	})
}

// FuzzLimit: any limit is refused by field, or never admits more than its
// quota at once and never tells a negative time.
func FuzzLimit(f *testing.F) {
	f.Add([]byte(`{"algorithm": "reserve", "permitsPerSecond": 1000, "maxBurstSeconds": 1, "maxWaitMillis": 1000}`), int64(1))
	f.Add([]byte(`{"algorithm": "sliding_window", "limit": 5, "intervalSeconds": 0.5}`), int64(3))
	f.Add([]byte(`{"algorithm": "nginx", "permitsPerSecond": 0.3, "burst": 999999999, "delay": 7}`), int64(9000))
	f.Add([]byte(`{"algorithm": "smooth_warming_up", "permitsPerSecond": 5, "warmupSeconds": 4, "coldFactor": 3}`), int64(2))
	f.Add([]byte(`{"algorithm": "sub_windows", "limit": 5, "intervalSeconds": 1, "parts": 10}`), int64(2))
	f.Fuzz(func(t *testing.T, text []byte, n int64) {
		var l ratelimit.Limit
		if json.Unmarshal(text, &l) != nil {
			return
		}
		clock := newClock()
		local, err := ratelimit.NewLocal(l, ratelimit.WithClock(clock.now))
		if err != nil {
			return
		}
		for _, step := range []time.Duration{0, us, time.Second, time.Hour, -time.Minute} {
			clock.add(step)
			d, err := local.Reserve(n, ratelimit.AnyWait)
			if err != nil {
				continue
			}
			if d.Wait < 0 || d.RetryAfter < 0 || d.ResetAfter < 0 || d.Remaining < 0 {
				t.Fatalf("%+v of %+v", d, l)
			}
			if d.Allowed != (d.Granted == n) || d.Never && d.Allowed || !d.Allowed && !d.Never && d.RetryAfter == 0 {
				t.Fatalf("%+v of %+v", d, l)
			}
		}
	})
}
