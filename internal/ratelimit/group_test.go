package ratelimit_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/scripts/lua"
)

func termsOf(t testing.TB, l ratelimit.Limit) ratelimit.Terms {
	terms, err := l.Terms()
	require.NoError(t, err)
	return terms
}

func onBothStores(t *testing.T, run func(t *testing.T, store ratelimit.Store)) {
	t.Run("memory", func(t *testing.T) { run(t, ratelimit.NewMemory(newClock().now)) })
	t.Run("redis", func(t *testing.T) {
		run(t, ratelimit.NewRedis(newClient(t, servers.Redis(t).Addr())).WithClock(newClock().now))
	})
}

func TestADeniedLimitChargesNoOther(t *testing.T) {
	onBothStores(t, func(t *testing.T, store ratelimit.Store) {
		wide := ratelimit.Ask{Key: "{g}:wide", Terms: termsOf(t, tokenBucket(1, 10)), N: 1}
		narrow := ratelimit.Ask{Key: "{g}:narrow", Terms: termsOf(t, window(ratelimit.FixedWindow, 2, 60)), N: 1}
		for _, want := range []bool{true, true, false, false, false} {
			got, err := store.TakeEach(t.Context(), []ratelimit.Ask{wide, narrow})
			require.NoError(t, err)
			require.Equal(t, want, got[0].Allowed)
			if !want {
				require.Equal(t, time.Minute, got[0].RetryAfter, "the longest of the two")
			}
		}
		left, err := store.Peek(t.Context(), wide)
		require.NoError(t, err)
		require.EqualValues(t, 8, left.Remaining)
	})
}

func TestGroupsAreJudgedInOrderAndAlone(t *testing.T) {
	onBothStores(t, func(t *testing.T, store ratelimit.Store) {
		ask := ratelimit.Ask{Key: "k", Terms: termsOf(t, tokenBucket(1, 3)), N: 1}
		group := []ratelimit.Ask{ask}
		pair := []ratelimit.Ask{ask, ask} // one key twice: both or none
		got, err := store.TakeEach(t.Context(), pair, pair, group, group)
		require.NoError(t, err)
		allowed := []bool{got[0].Allowed, got[1].Allowed, got[2].Allowed, got[3].Allowed}
		require.Equal(t, []bool{true, false, true, false}, allowed)
	})
}

func TestALeaseTakesWhatThereIs(t *testing.T) {
	onBothStores(t, func(t *testing.T, store ratelimit.Store) {
		for _, l := range []ratelimit.Limit{
			tokenBucket(1, 5), window(ratelimit.FixedWindow, 5, 60), window(ratelimit.SlidingWindow, 5, 60),
		} {
			ask := ratelimit.Ask{Key: "lease:" + string(l.Algorithm), Terms: termsOf(t, l), N: 8, Least: 2}
			got, err := store.TakeEach(t.Context(), []ratelimit.Ask{ask}, []ratelimit.Ask{ask})
			require.NoError(t, err)
			require.True(t, got[0].Allowed)
			require.EqualValues(t, 5, got[0].Granted)
			require.False(t, got[1].Allowed)
		}
	})
}

func TestRefundGivesBackOnlyWhatIsStillBooked(t *testing.T) {
	onEveryForm(t, func(t *testing.T, made func(ratelimit.Limit, *handClock) subject) {
		for _, l := range []ratelimit.Limit{
			tokenBucket(1, 5), window(ratelimit.FixedWindow, 5, 5), window(ratelimit.SlidingWindow, 5, 5),
		} {
			clock := newClock()
			s := made(l, clock)
			booked := clock.now()
			require.Equal(t, 5, admittedNow(s))
			s.refund(2, booked)
			require.Equal(t, 2, admittedNow(s), l.Algorithm)
			clock.add(20 * time.Second) // all has drained, every window is over
			require.True(t, s.ask(1, 0).Allowed)
			s.refund(5, booked)
			require.LessOrEqual(t, admittedNow(s), 5, l.Algorithm)
			if l.Algorithm != ratelimit.TokenBucket {
				require.Zero(t, admittedNow(s), "%s: an old window's refund is no credit for a new one", l.Algorithm)
			}
		}
	})
}

func TestPeekChargesNothing(t *testing.T) {
	onEveryForm(t, func(t *testing.T, made func(ratelimit.Limit, *handClock) subject) {
		s := made(tokenBucket(1, 3), newClock())
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

// TestLimitsAreNoKeys: on a cluster, limits passed as KEYS answer CROSSSLOT.
func TestFaultLimitsPassedAsKeys(t *testing.T) {
	store := ratelimit.NewRedis(newCluster(t))
	a := ratelimit.Ask{Key: "{7}:ratelimit:a", Terms: termsOf(t, tokenBucket(1, 3)), N: 1}
	b := ratelimit.Ask{Key: "{7}:ratelimit:b", Terms: termsOf(t, window(ratelimit.SlidingWindow, 3, 1)), N: 1}
	got, err := store.Take(t.Context(), a, b)
	require.NoError(t, err)
	require.True(t, got.Allowed)

	g := newGate(t, book(t, hotRule), store, ratelimit.GateOptions{Cluster: true, Deadline: 5 * time.Second})
	for goods := range int64(50) { // spread over slots, each in a lane of its own
		out := decide(t, g, "hot", ratelimit.Attributes{Goods: goods + 1})
		require.True(t, out.Allowed && !out.Undecided)
	}
}

// TestScriptHeaders holds each script's header against its body: every KEYS and
// ARGV that is read is named, and nothing is computed into a key.
func TestScriptHeaders(t *testing.T) {
	for _, name := range []string{"ratelimit_decide", "ratelimit_sync"} {
		source := lua.Source(name)
		header, body, ok := strings.Cut(source, "\n\n")
		require.True(t, ok)
		require.Contains(t, header, "-- KEYS[")
		require.Contains(t, header, "-- Returns")
		for _, used := range regexp.MustCompile(`(KEYS|ARGV)\[(\d+)\]`).FindAllString(body, -1) {
			require.Contains(t, header, used, "%s reads %s", name, used)
		}
		require.NotRegexp(t, `redis\.p?call\('[A-Z]+', [^)]*\.\.`, body, "a key is built in the script")
	}
	require.Contains(t, lua.Source("ratelimit_decide"), "local STRIDE = 11")
	require.Panics(t, func() { lua.Source("none") })
}
