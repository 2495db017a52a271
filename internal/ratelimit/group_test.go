package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

func termsOf(t require.TestingT, l ratelimit.Limit) ratelimit.Params {
	terms, err := l.Params()
	require.NoError(t, err)
	return terms
}

func onBothStores(t *testing.T, run func(t *testing.T, store store)) {
	t.Run("memory", func(t *testing.T) { run(t, ratelimit.NewMemory(testclock.New().Now)) })
	t.Run("redis", func(t *testing.T) {
		run(t, redislimit.New(newClient(t, servers.Redis(t).Addr()), testclock.New().Now))
	})
}

func TestStore_DeniedGroupTakesNothing(t *testing.T) {
	onBothStores(t, func(t *testing.T, store store) {
		wide := ratelimit.Request{Key: "{g}:wide", Params: termsOf(t, tokenBucket(1, 10)), N: 1}
		narrow := ratelimit.Request{
			Key: "{g}:narrow", Params: termsOf(t, window(ratelimit.FixedWindow, 2, 60)), N: 1,
		}
		for _, want := range []bool{true, true, false, false, false} {
			got, err := store.TakeEach(t.Context(), []ratelimit.Request{wide, narrow})
			require.NoError(t, err)
			require.Equal(t, want, got[0].Allowed)
			if !want {
				require.Equal(t, time.Minute, got[0].RetryAfter,
					"RetryAfter is the longer of the two")
			}
		}
		left, err := store.Peek(t.Context(), wide)
		require.NoError(t, err)
		require.EqualValues(t, 8, left.Remaining)
	})
}

// TestStore_GroupsAreDecidedInOrder checks that the store decides each group with the permits that
// earlier groups left.
func TestStore_GroupsAreDecidedInOrder(t *testing.T) {
	onBothStores(t, func(t *testing.T, store store) {
		ask := ratelimit.Request{Key: "k", Params: termsOf(t, tokenBucket(1, 3)), N: 1}
		group := []ratelimit.Request{ask}
		pair := []ratelimit.Request{ask, ask} // one key twice: both permits or none
		got, err := store.TakeEach(t.Context(), pair, pair, group, group)
		require.NoError(t, err)
		allowed := []bool{got[0].Allowed, got[1].Allowed, got[2].Allowed, got[3].Allowed}
		require.Equal(t, []bool{true, false, true, false}, allowed)
	})
}

// TestStore_MinGrantsAPart checks that a request with Min gets the remaining permits if they are at
// least Min.
func TestStore_MinGrantsAPart(t *testing.T) {
	onBothStores(t, func(t *testing.T, store store) {
		for _, l := range kinds(60) {
			ask := ratelimit.Request{
				Key: "lease:" + string(l.Algorithm), Params: termsOf(t, l), N: 8, Min: 2,
			}
			got, err := store.TakeEach(t.Context(), []ratelimit.Request{ask},
				[]ratelimit.Request{ask})
			require.NoError(t, err)
			require.True(t, got[0].Allowed)
			require.EqualValues(t, 5, got[0].Granted)
			require.False(t, got[1].Allowed)
		}
	})
}

func TestLimiter_RefundCreditsOnlyWhatIsStillTaken(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, l := range kinds(5) {
			clock := testclock.New()
			s := made(l, clock)
			booked := clock.Now()
			require.Equal(t, 5, admittedNow(s))
			s.refund(2, booked)
			require.Equal(t, 2, admittedNow(s), l.Algorithm)
			clock.Add(20 * time.Second) // every bucket is full, every window is over
			require.True(t, s.take(1, 0).Allowed)
			s.refund(5, booked)
			require.LessOrEqual(t, admittedNow(s), 5, l.Algorithm)
			if l.Algorithm != ratelimit.TokenBucket {
				require.Zero(t, admittedNow(s),
					"%s: a refund of an old window must not credit a new one", l.Algorithm)
			}
		}
	})
}

func TestLimiter_PeekTakesNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		s := made(tokenBucket(1, 3), testclock.New())
		for range 5 {
			d := s.peek(1, 0)
			require.True(t, d.Allowed)
			require.EqualValues(t, 3, d.Remaining)
		}
		require.Equal(t, 3, admittedNow(s))
		d := s.peek(1, 0)
		require.False(t, d.Allowed)
		require.Equal(t, time.Second, d.RetryAfter)
	})
}
