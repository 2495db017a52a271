package ratelimit_test

import (
	"fmt"
	"math/big"
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

// burstOf returns a limit whose burst is a number of permits.
func burstOf(a ratelimit.Algorithm, rate float64, burst int64) ratelimit.Limit {
	return ratelimit.Limit{Algorithm: a, PermitsPerSecond: rate, Burst: burst, NoDelay: true}
}

// admittedIn asks each millisecond for a time and counts the admissions.
func admittedIn(s *limiter, clock *testclock.Clock, length time.Duration) int {
	n := 0
	for range length / ms {
		n += admittedNow(s)
		clock.Add(ms)
	}
	return n
}

// TestLimiter_ChangedRateKeepsPermits lowers and raises the rate of a drained limiter whose burst
// is in permits. The permits taken stay taken. A slower limiter opens no burst, and a faster one
// does not deny for the time that these permits took at the old rate.
func TestLimiter_ChangedRateKeepsPermits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, a := range []ratelimit.Algorithm{
			ratelimit.TokenBucket, ratelimit.LeakyMeter, ratelimit.Nginx,
		} {
			clock := testclock.New()
			s := made(burstOf(a, 1000, 100), clock)
			require.GreaterOrEqual(t, admittedNow(s), 100)
			s.setLimit(burstOf(a, 10, 100))
			require.Zero(t, admittedNow(s), a)
			require.Equal(t, 3, admittedIn(s, clock, 301*ms), "%s: 0.3 s at 10/s", a)

			s = made(burstOf(a, 500, 40), clock)
			require.GreaterOrEqual(t, admittedNow(s), 40)
			s.setLimit(burstOf(a, 10, 40))
			require.Zero(t, admittedNow(s), a)
			s.setLimit(burstOf(a, 500, 40))
			require.Zero(t, admittedNow(s), a)
			clock.Add(2 * ms)
			require.Equal(t, 100, admittedIn(s, clock, 200*ms), "%s: 0.2 s at 500/s", a)
		}
	})
}

// TestLimiter_ChangedRateKeepsTimeOfBurstInSeconds checks that a drained limiter stays drained, and
// no more than that, if its burst is in seconds or changes together with the rate.
func TestLimiter_ChangedRateKeepsTimeOfBurstInSeconds(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		for name, c := range map[string]struct{ before, after ratelimit.Limit }{
			"seconds": {tokenBucket(1000, 0.1), tokenBucket(10, 0.1)},
			"permits and rate": {
				burstOf(ratelimit.TokenBucket, 1000, 100), burstOf(ratelimit.TokenBucket, 10, 5),
			},
			"seconds and rate": {tokenBucket(1000, 1), tokenBucket(10, 2)},
		} {
			clock := testclock.New()
			s := made(c.before, clock)
			require.Positive(t, admittedNow(s))
			for _, l := range []ratelimit.Limit{c.after, c.before, c.after} {
				s.setLimit(l)
				require.Zero(t, admittedNow(s), name)
			}
			clock.Add(100 * ms)
			require.Equal(t, 1, admittedNow(s), "%s: a permit of 10/s", name)
		}
	})
}

// TestLimiter_SlowRateForgetsNoPermits takes ten million permits of a fast limiter. At the slow
// rates these are more than 2^51 ticks. After the change back it admits what has accumulated
// meanwhile.
func TestLimiter_SlowRateForgetsNoPermits(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		const fast, burst = 1e6, 10_000_000
		for _, slow := range []float64{333.333, 333.3333333} {
			for _, pause := range []time.Duration{2 * time.Second, 15_000 * time.Second} {
				clock := testclock.New()
				s := made(tokenBucket(fast, 10), clock)
				require.True(t, s.take(burst, 0).Allowed)
				s.setLimit(tokenBucket(slow, 10))
				require.False(t, s.take(1, 0).Allowed)
				clock.Add(pause / 2)
				require.True(t, s.take(100, 0).Allowed)
				clock.Add(pause / 2)
				s.setLimit(tokenBucket(fast, 10))
				most := s.request(burst, 0)
				most.Min = 1
				got := must.Get(s.store.TakeEach(t.Context(), most))(t)[0].Granted + 100
				accumulated := slow * pause.Seconds()
				require.LessOrEqual(t, float64(got), accumulated, "%v/s for %v", slow, pause)
				require.Greater(t, float64(got), accumulated-10, "%v/s for %v", slow, pause)
			}
		}
	})
}

// TestReserve_ChangedRateKeepsPromisedWaits checks that callers who wait keep their times: new ones
// wait behind them, neither at the same moments nor a hundred times as long.
func TestReserve_ChangedRateKeepsPromisedWaits(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		at := func(rate float64) ratelimit.Limit {
			l := burstOf(ratelimit.Reserve, rate, 10)
			l.MaxWaitMillis = 1000
			return l
		}
		s := made(at(1000), clock)
		for range 10 + 500 {
			require.True(t, s.take(1, anyWait).Allowed)
		}
		s.setLimit(at(10))
		require.Equal(t, 600*ms, s.take(1, anyWait).Wait)
		s.setLimit(at(1000))
		require.Equal(t, 601*ms, s.take(1, anyWait).Wait)
	})
}

// TestReserve_ChangesBackAndForthKeepPromisedMoments has callers wait for a limiter whose interval
// is no whole number of microseconds. It changes to a slow one and back. Nobody gets a moment that
// another caller was promised.
func TestReserve_ChangesBackAndForthKeepPromisedMoments(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		for _, rate := range []float64{333.333, 700, 700_000, 999_999} {
			for _, slow := range []float64{0.1, 7} {
				at := func(rate float64) ratelimit.Limit {
					return ratelimit.Limit{
						Algorithm: ratelimit.Reserve, PermitsPerSecond: rate, MaxWaitMillis: 1000,
					}
				}
				for _, callers := range []int64{2, 3, 4, 70} {
					s := made(at(rate), testclock.New())
					last := s.take(callers, anyWait)
					require.True(t, last.Allowed)
					s.setLimit(at(slow))
					require.False(t, s.take(1, 0).Allowed)
					s.setLimit(at(rate))
					next := s.take(1, anyWait)
					require.Greater(t, next.Wait, last.Wait,
						"%v/s, %v/s, %d callers", rate, slow, callers)
				}
			}
		}
	})
}

// exactBucket is a token bucket in fractions of permits. A change keeps the number of permits taken
// and, of the rate, their share of the burst. The level is the larger of both.
type exactBucket struct{ rate, burst, level, taken, share big.Rat }

func (b *exactBucket) set(l ratelimit.Limit) {
	before, rate := new(big.Rat).Set(&b.burst), new(big.Rat).Set(&b.rate)
	b.rate.SetFloat64(l.PermitsPerSecond)
	if b.burst.SetInt64(l.Burst); l.Burst == 0 {
		b.burst.Mul(&b.rate, new(big.Rat).SetFloat64(l.MaxBurstSeconds))
	}
	if before.Sign() == 0 {
		return
	}
	if b.rate.Cmp(rate) != 0 {
		b.share.Mul(smaller(&b.share, before), new(big.Rat).Quo(&b.burst, before))
	}
	b.level.Set(smaller(&b.burst, larger(&b.share, &b.taken)))
}

func (b *exactBucket) add(permits *big.Rat) {
	for _, n := range []*big.Rat{&b.level, &b.taken, &b.share} {
		n.Set(larger(new(big.Rat), n.Add(n, permits)))
	}
}

func larger(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

func smaller(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

// drawBucket returns a token bucket whose burst is in permits or in seconds.
func drawBucket(t *rapid.T) ratelimit.Limit {
	rate := rapid.SampledFrom([]float64{0.125, 10, 500, 700, 1000}).Draw(t, "rate")
	if rapid.Bool().Draw(t, "burst in permits") {
		burst := rapid.SampledFrom([]int64{5, 40, 100}).Draw(t, "burst")
		return burstOf(ratelimit.TokenBucket, rate, burst)
	}
	return tokenBucket(rate, rapid.SampledFrom([]float64{8, 16}).Draw(t, "seconds"))
}

// TestLimiter_ChangesBackAndForthKeepPermits compares a limiter whose rate and burst change again
// and again with an exact one. It never admits what the exact one denies. A change rounds up to a
// microsecond, which is less than four permits of these bursts. It denies no more than that. In all
// it admits the largest burst and what accumulates at the rates of the time.
func TestLimiter_ChangesBackAndForthKeepPermits(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	for _, name := range []string{"memory", "redis"} {
		t.Run(name, func(t *testing.T) {
			keys := 0
			property.Check(t, func(t *rapid.T) {
				clock, l := testclock.New(), drawBucket(t)
				s := newLocal(t, l, clock)
				if name == "redis" {
					keys++
					s = newLimiter(t, redislimit.New(client, clock.Now), fmt.Sprint(keys), l)
				}
				playChanges(t, s, l, clock)
			})
		})
	}
}

func playChanges(t *rapid.T, s *limiter, l ratelimit.Limit, clock *testclock.Clock) {
	limits := []ratelimit.Limit{l, drawBucket(t), drawBucket(t)}
	var exact exactBucket
	var admitted, most, largest, rounded big.Rat
	exact.set(l)
	largest.Set(&exact.burst)
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			step := rapid.SampledFrom([]int64{1, 800, 40_000, 3_000_000}).Draw(t, "step µs")
			clock.Add(time.Duration(step) * us)
			passed := new(big.Rat).Mul(&exact.rate, big.NewRat(step, 1e6))
			most.Add(&most, passed)
			exact.add(passed.Neg(passed))
		case 1:
			next := rapid.SampledFrom(limits).Draw(t, "limit")
			if next == l {
				break
			}
			l = next
			s.setLimit(l)
			exact.set(l)
			largest.Set(larger(&largest, &exact.burst))
			rounded.Add(&rounded, big.NewRat(4, 1))
		}
		n := rapid.SampledFrom([]int64{1, 2, 4, 50}).Draw(t, "n")
		d := s.take(n, 0)
		after := new(big.Rat).Add(&exact.level, new(big.Rat).SetInt64(n))
		if !d.Allowed {
			require.Positive(t, after.Add(after, &rounded).Cmp(&exact.burst), "%+v", d)
			continue
		}
		require.LessOrEqual(t, after.Cmp(&exact.burst), 0, "%d of %+v", n, l)
		exact.add(new(big.Rat).SetInt64(n))
		admitted.Add(&admitted, new(big.Rat).SetInt64(n))
		bound := new(big.Rat).Add(&largest, &most)
		require.LessOrEqual(t, admitted.Cmp(bound), 0, "%s of %s", &admitted, bound)
	}
}
