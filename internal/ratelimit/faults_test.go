package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// Each test covers one fault that a well-known limiter has.

const us = time.Microsecond

func tokenBucket(rate, burstSeconds float64) ratelimit.Limit {
	return ratelimit.Limit{
		Algorithm: ratelimit.TokenBucket, PermitsPerSecond: rate, MaxBurstSeconds: burstSeconds,
	}
}

func window(a ratelimit.Algorithm, limit int64, seconds float64) ratelimit.Limit {
	return ratelimit.Limit{Algorithm: a, Limit: limit, IntervalSeconds: seconds, Parts: 10}
}

// kinds returns a limit of five for each kind of state in Redis.
func kinds(interval float64) []ratelimit.Limit {
	return []ratelimit.Limit{
		tokenBucket(1, 5), window(ratelimit.FixedWindow, 5, interval),
		window(ratelimit.SlidingWindow, 5, interval), window(ratelimit.SlidingLog, 5, interval),
	}
}

// TestLimiter_AdmitsExactlyItsRate sends one call per step until total has elapsed.
func TestLimiter_AdmitsExactlyItsRate(t *testing.T) {
	ofTen := func(rate float64) ratelimit.Limit {
		return ratelimit.Limit{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: rate, Burst: 10}
	}
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		for name, c := range map[string]struct {
			limit       ratelimit.Limit
			step, total time.Duration
			admitted    int
		}{
			// The burst of 2 never limits. A refill that rounds down would pass 101.
			"not rounded down": {tokenBucket(2, 1), 499 * ms, 100 * time.Second, 201},
			// 2,000 refilled and 100 saved permits, of which the last is still incomplete.
			"nor below 1 ms": {tokenBucket(1000, 0.1), 900 * us, 2 * time.Second, 2099},
			"not rounded up": {tokenBucket(1, 1), ms, 2 * time.Second, 2},
			// The interval between permits is not a whole number of milliseconds.
			"700/s":  {ofTen(700), 100 * us, 250 * ms, 10 + 174},
			"999/s":  {ofTen(999), 100 * us, 250 * ms, 10 + 249},
			"1500/s": {ofTen(1500), 100 * us, 250 * ms, 10 + 374},
			"3000/s": {ofTen(3000), 100 * us, 250 * ms, 10 + 749},
			"one in three seconds": {ratelimit.Limit{
				Algorithm: ratelimit.TokenBucket, Limit: 1, IntervalSeconds: 3, Burst: 1,
			}, 500 * ms, 100 * time.Second, 34},
			"0.1/s: the burst is at least one permit": {
				tokenBucket(0.1, 1), 500 * ms, 100 * time.Second, 10,
			},
		} {
			clock, n := testclock.New(), 0
			s := made(c.limit, clock)
			for range (c.total + c.step - 1) / c.step {
				if s.take(1, 0).Allowed {
					n++
				}
				clock.Add(c.step)
			}
			require.Equal(t, c.admitted, n, name)
		}
	})
}

func TestLimiter_CallersClockIsIgnored(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	// Redis uses its own clock in production. Only tests can pass a clock.
	terms := paramsOf(t, tokenBucket(0.01, 500))
	a, b := redislimit.New(client, nil), redislimit.New(client, nil)
	granted := 0
	for range 20 {
		for _, node := range []*redislimit.Store{a, b} {
			d := (&limiter{t, node, "one", terms}).take(1, 0)
			if d.Allowed {
				granted++
			}
			require.WithinDuration(t, time.Now(), d.At, time.Minute, "Redis' own clock")
		}
	}
	require.Equal(t, 5, granted)
}

// admittedNow takes permits until the limiter denies one.
func admittedNow(s *limiter) int {
	n := 0
	for s.take(1, 0).Allowed {
		n++
	}
	return n
}

// TestLimiter_ClockStepBackNeitherAdmitsNorBlocks moves the clock back by an hour. The limiter
// grants no extra permits and recovers within seconds.
func TestLimiter_ClockStepBackNeitherAdmitsNorBlocks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, l := range kinds(5) {
			clock := testclock.New()
			clock.Add(24 * time.Hour)
			s := made(l, clock)
			require.Equal(t, 5, admittedNow(s), l.Algorithm)
			clock.Add(-time.Hour)
			require.Zero(t, admittedNow(s), "%s: a clock step creates no permits", l.Algorithm)
			clock.Add(10 * time.Second)
			require.Equal(t, 5, admittedNow(s),
				"%s: a clock step does not block the limiter for an hour", l.Algorithm)
		}
	})
}

// TestLimiter_ShortStepBackIsNoOutage moves the clock of a drained limiter back by less than two
// seconds. The next permit is there after its interval.
func TestLimiter_ShortStepBackIsNoOutage(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, back := range []time.Duration{50 * ms, 150 * ms, 1500 * ms, 1900 * ms} {
			clock := testclock.New()
			s := made(tokenBucket(100, 1), clock)
			require.Equal(t, 100, admittedNow(s))
			clock.Add(-back)
			require.Zero(t, admittedNow(s))
			clock.Add(60 * ms) // a step of less than 100 ms is waited for
			require.NotZero(t, admittedNow(s), "%v", back)
			n := 0
			for range 100 {
				clock.Add(10 * ms)
				n += admittedNow(s)
			}
			require.Equal(t, 100, n, "%v", back)
		}
	})
}

// TestLimiter_SwingingClockCreatesFewPermits has a clock that is ahead by 10 s for a tenth of a
// second, and right for the next. The first step refills the bucket once. Each later one adds a
// tenth of a second's permits at most, and the time while the clock is behind counts twice. A
// limiter that drains at each step would admit 2,000 permits more. No step is an outage.
func TestLimiter_SwingingClockCreatesFewPermits(t *testing.T) {
	const rate, burst, swings = 100, 100, 20
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		s, n := made(tokenBucket(rate, 1), clock), 0
		for range swings {
			for _, step := range []time.Duration{10 * time.Second, -10 * time.Second} {
				before := n
				clock.Add(step)
				for range 10 {
					n += admittedNow(s)
					clock.Add(10 * ms)
				}
				require.GreaterOrEqual(t, n-before, 9, "a tenth of a second's permits but one")
			}
		}
		t.Logf("%d permits in %d ms", n, swings*200)
		require.LessOrEqual(t, n, 2*burst+swings*(rate/5+rate/10+rate/10))
	})
}

// TestLimiter_KeyOutlivesASwingingClock has a clock that is ahead by more than the bucket's level.
// In a real Redis a key expires by this clock, so the test deletes it then.
func TestLimiter_KeyOutlivesASwingingClock(t *testing.T) {
	const burst, swings, later = 20, 5, 10 * time.Minute // Redis keeps a test's keys so much longer
	client, clock := newClient(t, servers.Redis(t).Addr()), testclock.New()
	s := newLimiter(t, redislimit.New(client, clock.Now), "k", tokenBucket(1, burst))
	n, expiry := 0, clock.Now()
	for range swings {
		for _, step := range []time.Duration{50 * time.Second, -50 * time.Second} {
			clock.Add(step)
			if clock.Now().After(expiry) {
				require.NoError(t, client.Del(t.Context(), "k").Err())
			}
			n += admittedNow(s)
			left := must.Get(client.PTTL(t.Context(), "k").Result())(t)
			expiry = clock.Now().Add(left - later)
			clock.Add(time.Second)
		}
	}
	require.LessOrEqual(t, n, 2*burst+swings*6, "a few permits for each swing")
}

// TestLimiter_ChangedLimitRefillsNothing changes the rate or the interval of a drained limiter. The
// limiter keeps the permits taken.
func TestLimiter_ChangedLimitRefillsNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, l := range append(kinds(60), bursty(1)) {
			s := made(l, testclock.New())
			admittedNow(s)
			faster, shorter, longer := l, l, l
			faster.PermitsPerSecond *= 2
			shorter.IntervalSeconds /= 2
			longer.IntervalSeconds *= 60
			for _, changed := range []ratelimit.Limit{l, faster, shorter, longer} {
				s.setLimit(changed)
				require.Zero(t, admittedNow(s), l.Algorithm)
			}
		}
	})
}

func TestStore_NonPositiveRequestsAreErrors(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	for _, s := range []gate.Store{ratelimit.NewMemory(nil), redislimit.New(client, nil)} {
		for _, n := range []int64{0, -1, -1 << 62} {
			ask := newLimiter(t, s, "k", tokenBucket(1, 5)).request(n, 0)
			_, err := s.TakeEach(t.Context(), ask)
			require.ErrorIs(t, err, ratelimit.ErrPermits)
			require.ErrorIs(t, s.Refund(t.Context(), ratelimit.Decision{}, ask),
				ratelimit.ErrPermits)
		}
	}
	require.Zero(t, client.Exists(t.Context(), "k").Val())
}

func TestStore_DeletedOrForeignKeyIsANewLimiter(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	ctx := context.Background()
	for _, l := range append(kinds(5), bursty(1)) {
		s := newLimiter(t, redislimit.New(client, testclock.New().Now), "k", l)
		require.True(t, s.take(1, 0).Allowed)
		require.NoError(t, client.Del(ctx, "k").Err())
		require.True(t, s.take(1, 0).Allowed, "deleted")
		require.NoError(t, client.Set(ctx, "k", "12", 0).Err())
		require.True(t, s.take(1, 0).Allowed, "a foreign counter without a TTL")
		require.Positive(t, client.PTTL(ctx, "k").Val(), "the store sets a TTL")
		require.NoError(t, client.Del(ctx, "k").Err())
		require.NoError(t, client.HSet(ctx, "k", "tokens", "3").Err())
		require.True(t, s.take(1, 0).Allowed, "another type")
		require.NoError(t, client.Del(ctx, "k").Err())
	}
}

func TestLeakyMeter_Drains(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		s := made(ratelimit.Limit{Algorithm: ratelimit.LeakyMeter, PermitsPerSecond: 10, Burst: 4},
			clock)
		require.Equal(t, 4, admittedNow(s))
		clock.Add(100 * ms)
		require.Equal(t, 1, admittedNow(s))
		clock.Add(time.Minute)
		require.Equal(t, 4, admittedNow(s))
		queue := made(
			ratelimit.Limit{Algorithm: ratelimit.LeakyQueue, PermitsPerSecond: 10, Burst: 3}, clock)
		for i := range 3 {
			require.Equal(t, time.Duration(i)*100*ms, queue.take(1, anyWait).Wait)
		}
		require.False(t, queue.take(1, anyWait).Allowed, "the queue is full")
	})
}

func TestStore_KeyWithoutTTLRecovers(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	ctx := context.Background()
	for _, l := range append(kinds(5), bursty(1)) {
		clock := testclock.New()
		s := newLimiter(t, redislimit.New(client, clock.Now), "k", l)
		for admittedNow(s) == 0 {
		}
		require.NoError(t, client.Persist(ctx, "k").Err())
		require.Zero(t, admittedNow(s))
		clock.Add(10 * time.Second)
		require.Positive(t, admittedNow(s),
			"%s: a key without a TTL must not block for ever", l.Algorithm)
		require.Positive(t, client.PTTL(ctx, "k").Val(), "the store sets the TTL again")
		require.NoError(t, client.Del(ctx, "k").Err())
	}
}

func TestStore_KeyLivesAsLongAsItsDebt(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	terms := paramsOf(t, ratelimit.Limit{
		Algorithm: ratelimit.Reserve, PermitsPerSecond: 0.01, Burst: 1, MaxWaitMillis: 86_400_000,
	})
	r := redislimit.New(client, nil)
	for range 10 {
		require.True(t, (&limiter{t, r, "k", terms}).take(1, anyWait).Allowed)
	}
	ttl := client.PTTL(t.Context(), "k").Val()
	require.Greater(t, ttl, 990*time.Second, "the key lives as long as the debt")
	require.LessOrEqual(t, ttl, 1001*time.Second, "the key ends with the debt")
}

func TestLimit_ZeroIsNotUnlimited(t *testing.T) {
	for field, l := range map[string]ratelimit.Limit{
		"intervalSeconds":  window(ratelimit.FixedWindow, 5, 0),
		"permitsPerSecond": tokenBucket(0, 1),
		"limit":            window(ratelimit.SlidingWindow, 0, 1),
		"burst":            {Algorithm: ratelimit.LeakyMeter, PermitsPerSecond: 1},
		"algorithm":        {},
		"maxWaitMillis": {
			Algorithm: ratelimit.Reserve, PermitsPerSecond: 1, MaxBurstSeconds: 1,
			MaxWaitMillis: -1,
		},
	} {
		var wrong *ratelimit.FieldError
		require.ErrorAs(t, l.Validate(), &wrong)
		require.Equal(t, field, wrong.Field)
	}
}

// TestLimit_EachFieldEndsAtItsBound compiles limits with the last valid value of a field and with
// the first invalid one. Rules and changes of limits promise these bounds.
func TestLimit_EachFieldEndsAtItsBound(t *testing.T) {
	const million, billion, day = 1_000_000, 1_000_000_000, 86_400
	bucket := func(perSecond float64, burst int64) ratelimit.Limit {
		return ratelimit.Limit{
			Algorithm: ratelimit.TokenBucket, PermitsPerSecond: perSecond, Burst: burst,
		}
	}
	reserve := func(wait int64) ratelimit.Limit {
		l := tokenBucket(1, 1)
		l.Algorithm, l.MaxWaitMillis = ratelimit.Reserve, wait
		return l
	}
	rate := func(a ratelimit.Algorithm, perSecond float64) ratelimit.Limit {
		return ratelimit.Limit{Algorithm: a, PermitsPerSecond: perSecond, Parts: 10}
	}
	parts := func(parts int64) ratelimit.Limit {
		l := window(ratelimit.SubWindows, 1, 1)
		l.Parts = parts
		return l
	}
	warmup := func(seconds, cold float64) ratelimit.Limit {
		return ratelimit.Limit{
			Algorithm: ratelimit.SmoothWarmingUp, PermitsPerSecond: 1, WarmupSeconds: seconds,
			ColdFactor: cold,
		}
	}
	nginx := func(delay int64) ratelimit.Limit {
		return ratelimit.Limit{
			Algorithm: ratelimit.Nginx, PermitsPerSecond: 1, Burst: 2, Delay: delay,
		}
	}
	meter := func(burst int64) ratelimit.Limit {
		return ratelimit.Limit{
			Algorithm: ratelimit.LeakyMeter, PermitsPerSecond: million, Burst: burst,
		}
	}
	for _, c := range []struct {
		field          string
		valid, invalid ratelimit.Limit
	}{
		{"maxWaitMillis", reserve(0), reserve(-1)},
		{"maxWaitMillis", reserve(day * 1000), reserve(day*1000 + 1)},
		{"permitsPerSecond", tokenBucket(million, 1), tokenBucket(million+1, 1)},
		{"permitsPerSecond", rate(ratelimit.FixedWindow, 1), rate(ratelimit.FixedWindow, 0.5)},
		{
			"permitsPerSecond",
			rate(ratelimit.FixedWindow, million), rate(ratelimit.FixedWindow, million+1),
		},
		{
			"permitsPerSecond",
			rate(ratelimit.SubWindows, million), rate(ratelimit.SubWindows, million+1),
		},
		{
			"limit", window(ratelimit.FixedWindow, billion, day),
			window(ratelimit.FixedWindow, billion+1, day),
		},
		{
			"limit", window(ratelimit.TokenBucket, million, 1),
			window(ratelimit.TokenBucket, million+1, 1),
		},
		{
			"limit", window(ratelimit.SlidingWindow, (1<<51)/(day*1000), day),
			window(ratelimit.SlidingWindow, (1<<51)/(day*1000)+1, day),
		},
		{
			"limit", window(ratelimit.SlidingLog, million, 1),
			window(ratelimit.SlidingLog, million+1, 1),
		},
		{
			"intervalSeconds", window(ratelimit.FixedWindow, 1, 0.001),
			window(ratelimit.FixedWindow, 1, 0.0005),
		},
		{
			"intervalSeconds", window(ratelimit.FixedWindow, 1, day),
			window(ratelimit.FixedWindow, 1, day+0.001),
		},
		{"parts", parts(1), parts(0)},
		{"parts", parts(1000), parts(1001)},
		{"coldFactor", warmup(1, 1), warmup(1, 0.5)},
		{"coldFactor", warmup(1, 1000), warmup(1, 1001)},
		{"warmupSeconds", warmup(day, 1), warmup(day+1, 1)},
		{"delay", nginx(0), nginx(-1)},
		{"delay", nginx(2), nginx(3)},
		{"burst", meter(1), meter(0)},
		{"burst", meter(billion), meter(billion + 1)},
		{"burst", bucket(million, billion), bucket(million, billion+1)},
		{"permitsPerSecond", bucket(1, 366*day), bucket(1, 366*day+1)},
		{"burst", bucket(1, 0), bucket(1, -1)},
		{"limit", window(ratelimit.FixedWindow, 1, 1), window(ratelimit.FixedWindow, 0, 1)},
	} {
		require.NoError(t, c.valid.Validate(), "%+v", c.valid)
		var wrong *ratelimit.FieldError
		require.ErrorAs(t, c.invalid.Validate(), &wrong, "%+v", c.invalid)
		require.Equal(t, c.field, wrong.Field, "%+v", c.invalid)
	}
}

// TestStore_MinGrantsAPart checks that a request with Min gets the remaining permits if they are at
// least Min.
func TestStore_MinGrantsAPart(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, l := range kinds(60) {
			s := made(l, testclock.New())
			ask := s.request(8, 0)
			ask.Min = 2
			got := must.Get(s.store.TakeEach(t.Context(), ask, ask))(t)
			require.EqualValues(t, 5, got[0].Granted)
			require.False(t, got[1].Allowed)
		}
	})
}

// TestLimiter_RefundCreditsOnlyWhatIsStillTaken refunds permits twice. Before the second time, the
// windows that were charged end, and the clock may have stepped back.
func TestLimiter_RefundCreditsOnlyWhatIsStillTaken(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, l := range kinds(5) {
			for _, step := range []time.Duration{0, -time.Hour} {
				clock := testclock.New()
				s := made(l, clock)
				require.True(t, s.take(3, 0).Allowed)
				booked := s.take(2, 0)
				s.refund(2, booked)
				require.Equal(t, 2, admittedNow(s), l.Algorithm)
				clock.Add(step)
				require.Zero(t, admittedNow(s), l.Algorithm)
				clock.Add(20 * time.Second) // every bucket is full, every window is over
				require.True(t, s.take(1, 0).Allowed)
				s.refund(5, booked)
				if left := admittedNow(s); l.Algorithm == ratelimit.TokenBucket {
					require.LessOrEqual(t, left, 5)
				} else {
					require.Equal(t, 4, left, "%s, a step of %v: the refund of an old window "+
						"must not credit a new one", l.Algorithm, step)
				}
			}
		}
	})
}
