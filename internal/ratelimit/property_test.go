package ratelimit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/property"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// drawLimit returns any limit that the Redis store supports.
func drawLimit(t *rapid.T) ratelimit.Limit {
	l := ratelimit.Limit{Algorithm: rapid.SampledFrom([]ratelimit.Algorithm{
		ratelimit.TokenBucket, ratelimit.Reserve, ratelimit.SmoothBursty, ratelimit.Nginx,
		ratelimit.LeakyQueue, ratelimit.LeakyMeter, ratelimit.FixedWindow, ratelimit.SlidingWindow,
		ratelimit.SlidingLog,
	}).Draw(t, "algorithm")}
	switch l.Algorithm {
	case ratelimit.FixedWindow, ratelimit.SlidingWindow, ratelimit.SlidingLog:
		l.Limit = rapid.Int64Range(1, 50).Draw(t, "limit")
		l.IntervalSeconds = float64(rapid.Int64Range(1, 20_000).Draw(t, "interval ms")) / 1000
		return l
	}
	l.PermitsPerSecond = rapid.SampledFrom([]float64{
		0.001, 0.1, 0.7, 1, 3, 7, 33.3, 333.333, 700, 999, 1500, 3000, 1e6,
	}).Draw(t, "rate")
	l.MaxBurstSeconds = rapid.SampledFrom([]float64{0, 0.001, 0.5, 1, 2.5, 60}).Draw(t,
		"burst seconds")
	l.MaxWaitMillis = rapid.SampledFrom([]int64{0, 1, 100, 1000, 60_000}).Draw(t, "wait")
	l.Burst = rapid.Int64Range(1, 20).Draw(t, "burst")
	l.Delay = rapid.Int64Range(0, l.Burst).Draw(t, "delay")
	l.NoDelay = rapid.Bool().Draw(t, "nodelay")
	return l
}

// drawOtherRate changes the rate of a bucket and keeps its burst, as an operator does. A window
// gets another interval.
func drawOtherRate(t *rapid.T, p ratelimit.Params) ratelimit.Params {
	l := p.Limit()
	if l.PermitsPerSecond > 0 {
		l.PermitsPerSecond = rapid.SampledFrom([]float64{0.1, 7, 333.333, 1e6}).Draw(t, "other")
	} else {
		l.IntervalSeconds = float64(rapid.Int64Range(1, 20_000).Draw(t, "other ms")) / 1000
	}
	return paramsOf(t, l)
}

// drawStep returns mostly short steps, some long steps, and some steps backwards.
func drawStep(t *rapid.T) time.Duration {
	most := rapid.SampledFrom([]int64{
		50, 50, 5000, 5000, 1_000_000, 1_000_000, 100_000_000, 100_000_000_000,
	}).Draw(t, "step up to µs")
	step := time.Duration(rapid.Int64Range(0, most).Draw(t, "step µs")) * us
	switch rapid.IntRange(0, 19).Draw(t, "back") {
	case 0:
		return -step
	case 1: // the longest correction, or another clock
		return -100*ms - time.Duration(rapid.IntRange(0, 1).Draw(t, "more µs"))*us
	}
	return step
}

func drawAsk(t *rapid.T, keys []string, terms []ratelimit.Params) ratelimit.Request {
	i := rapid.IntRange(0, len(keys)-1).Draw(t, "key")
	ask := ratelimit.Request{
		Key: keys[i], Params: terms[i],
		N:       rapid.SampledFrom([]int64{1, 1, 1, 2, 5, 30, 1 << 40, 1<<63 - 1}).Draw(t, "n"),
		MaxWait: rapid.SampledFrom([]time.Duration{0, ms, 300 * ms, anyWait}).Draw(t, "max wait"),
	}
	ask.Min = rapid.Int64Range(0, min(ask.N, 5)).Draw(t, "least")
	return ask
}

// apart is a Memory for each key. One Memory may drop a full limiter for another key, and so forget
// the latest time that its clock had. Redis keeps the keys of this test for ten minutes longer.
type apart map[string]*ratelimit.Memory

func (a apart) takeEach(t require.TestingT, asks []ratelimit.Request) (all []ratelimit.Decision) {
	for i := range asks {
		all = append(all, must.Get(a[asks[i].Key].TakeOne(&asks[i]))(t))
	}
	return all
}

// TestMemory_DecidesLikeRedis compares both stores over random calls, clock steps and changes of
// the limit.
func TestMemory_DecidesLikeRedis(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	runs := 0
	property.Check(t, func(t *rapid.T) {
		runs++
		clock := testclock.New()
		memory, inRedis := apart{}, redislimit.New(client, clock.Now)
		keys := []string{
			fmt.Sprintf("%d:a", runs), fmt.Sprintf("%d:b", runs), fmt.Sprintf("%d:c", runs),
		}
		for _, key := range keys {
			memory[key] = ratelimit.NewMemory(clock.Now)
		}
		drawTerms := func() ratelimit.Params { return paramsOf(t, drawLimit(t)) }
		terms := []ratelimit.Params{drawTerms(), drawTerms(), drawTerms()}
		taken, of := ratelimit.Decision{At: clock.Now()}, drawAsk(t, keys, terms)
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			clock.Add(drawStep(t))
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				terms[rapid.IntRange(0, 2).Draw(t, "whose")] = drawTerms()
				i := rapid.IntRange(0, 2).Draw(t, "whose rate")
				terms[i] = drawOtherRate(t, terms[i])
			case 1:
				ask := of
				if rapid.Bool().Draw(t, "of another") {
					ask = drawAsk(t, keys, terms)
				}
				ask.N, ask.Min = min(ask.N, 30), 0
				require.NoError(t, memory[ask.Key].Refund(context.Background(), taken, ask))
				require.NoError(t, inRedis.Refund(context.Background(), taken, ask))
			case 2:
				ask := drawAsk(t, keys, terms)
				inGo := must.Get(memory[ask.Key].Peek(context.Background(), ask))(t)
				require.Equal(t, inGo, must.Get(inRedis.Peek(context.Background(), ask))(t))
			default:
				asks := []ratelimit.Request{drawAsk(t, keys, terms)}
				if rapid.Bool().Draw(t, "two") { // the script has a shorter form for one
					asks = append(asks, drawAsk(t, keys, terms))
				}
				inGo := memory.takeEach(t, asks)
				require.Equal(t, inGo, must.Get(inRedis.TakeEach(context.Background(), asks...))(t))
				i := rapid.IntRange(0, len(inGo)-1).Draw(t, "taken")
				taken, of = inGo[i], asks[i]
			}
		}
	})
}

// FuzzLimit checks that validation rejects a limit by field, or the limiter keeps its bounds. An
// accepted limit never admits more than its quota at one moment. It never reports a negative time.
func FuzzLimit(f *testing.F) {
	for _, text := range []string{
		`{"algorithm":"reserve","permitsPerSecond":1000,"maxBurstSeconds":1,"maxWaitMillis":1000}`,
		`{"algorithm":"sliding_window","limit":5,"intervalSeconds":0.5}`,
		`{"algorithm":"nginx","permitsPerSecond":0.3,"burst":999999999,"delay":7}`,
		`{"algorithm":"smooth_warming_up","permitsPerSecond":5,"warmupSeconds":4,"coldFactor":3}`,
		`{"algorithm":"sub_windows","limit":5,"intervalSeconds":1,"parts":10}`,
	} {
		for _, n := range []int64{1, 3, 9000} {
			f.Add([]byte(text), n)
		}
	}
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
