package ratelimit_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/ratelimit"
)

// unhurried is a timeout that a busy machine does not reach.
const unhurried = 30 * time.Second

func redisAt(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		DisableIdentity: true,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newLimiter(
	t *testing.T, store ratelimit.Store, limit ratelimit.Limit, options ...ratelimit.Option,
) *ratelimit.Limiter {
	options = append([]ratelimit.Option{ratelimit.Timeout(unhurried)}, options...)
	l := must.Get(ratelimit.New(store, limit, options...))(t)
	t.Cleanup(l.Close)
	return l
}

// onEachStore runs a test with both stores.
func onEachStore(t *testing.T, test func(*testing.T, ratelimit.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, ratelimit.Memory()) })
	t.Run("redis", func(t *testing.T) {
		test(t, ratelimit.Redis(redisAt(t, servers.Redis(t).Addr())))
	})
}

// each hour a permit: no machine is so slow that one accumulates during a test.
func hourly(burst int) ratelimit.Limit {
	return ratelimit.Limit{Permits: 1, Per: time.Hour, Burst: burst, MaxWait: 24 * time.Hour}
}

func TestAllow_TakesAllPermitsOfARequestOrNone(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ratelimit.Store) {
		l := newLimiter(t, store, hourly(5))
		allow := func(key string, n int) ratelimit.Decision {
			return must.Get(l.Allow(t.Context(), key, n))(t)
		}
		first := allow("a", 3)
		assert.True(t, first.Allowed)
		assert.Equal(t, 2, first.Remaining)
		assert.Zero(t, first.Delay)
		second := allow("a", 3)
		assert.False(t, second.Allowed || second.Never)
		assert.Equal(t, 2, second.Remaining, "a denied request takes nothing")
		assert.Positive(t, second.RetryAfter)
		assert.LessOrEqual(t, second.RetryAfter, time.Hour)
		assert.True(t, allow("a", 2).Allowed)
		assert.True(t, allow("b:{x}", 5).Allowed, "another key has its own permits")
		assert.False(t, allow("b:{x}", 1).Allowed)
		assert.True(t, allow("a", 1_000_000).Never)
	})
}

func TestPeek_TakesNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ratelimit.Store) {
		l := newLimiter(t, store, hourly(2))
		for range 3 {
			d := must.Get(l.Peek(t.Context(), "a"))(t)
			assert.Equal(t, ratelimit.Decision{Allowed: true, Remaining: 2}, d)
		}
		must.Get(l.Allow(t.Context(), "a", 2))(t)
		d := must.Get(l.Peek(t.Context(), "a"))(t)
		assert.False(t, d.Allowed || d.Never)
		assert.Zero(t, d.Remaining)
		assert.Positive(t, d.ResetAfter)
	})
}

// TestKey_LongKeyIsHashed takes and reads permits of two long keys that begin alike, and of the
// longest key that is kept.
func TestKey_LongKeyIsHashed(t *testing.T) {
	const longest = 200
	long := strings.Repeat("x", 900<<10)
	onEachStore(t, func(t *testing.T, store ratelimit.Store) {
		l := newLimiter(t, store, hourly(2))
		for _, key := range []string{long + "1", long + "2", long[:longest], long[:longest+1]} {
			require.Equal(t, 2, must.Get(l.Peek(t.Context(), key))(t).Remaining)
			require.True(t, must.Get(l.Allow(t.Context(), key, 1))(t).Allowed)
			require.Equal(t, 1, must.Get(l.Peek(t.Context(), key))(t).Remaining)
		}
	})
	client := redisAt(t, servers.Redis(t).Addr())
	l := newLimiter(t, ratelimit.Redis(client), hourly(2), ratelimit.Prefix("p:"))
	for _, key := range []string{long, long[:longest], long[:longest+1]} {
		must.Get(l.Allow(t.Context(), key, 1))(t)
	}
	for _, key := range must.Get(client.Keys(t.Context(), "*").Result())(t) {
		assert.LessOrEqual(t, len(key), len("p:")+longest)
	}
}

func TestAllow_ConcurrentCallersGetNoMoreThanTheBurst(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ratelimit.Store) {
		const burst = 100
		l := newLimiter(t, store, hourly(burst), ratelimit.Leases(10))
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				for range 10 {
					d, err := l.Allow(context.Background(), "hot", 1)
					if assert.NoError(t, err) && d.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, burst, admitted.Load())
	})
}

func TestReserve_CancelReturnsPermitsOnce(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := newLimiter(t, ratelimit.Memory(), hourly(3),
		ratelimit.Clock(func() time.Time { return at }))
	r := must.Get(l.Reserve(t.Context(), "a", 2))(t)
	r.Cancel()
	r.Cancel()
	require.ErrorIs(t, r.Wait(t.Context()), ratelimit.ErrLimited)
	assert.Equal(t, 3, must.Get(l.Peek(t.Context(), "a"))(t).Remaining)
	require.True(t, must.Get(l.Allow(t.Context(), "a", 3))(t).Allowed)
	late := must.Get(l.Reserve(t.Context(), "a", 2))(t)
	assert.True(t, late.Allowed)
	assert.Equal(t, 2*time.Hour, late.Delay)
}

func TestWait_CallerThatLeavesReturnsItsPermits(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ratelimit.Store) {
		l := newLimiter(t, store, hourly(1))
		require.NoError(t, l.Wait(t.Context(), "a", 1))
		before := must.Get(l.Peek(t.Context(), "a"))(t).ResetAfter
		ctx, leave := context.WithCancel(t.Context())
		r := must.Get(l.Reserve(ctx, "a", 1))(t)
		require.True(t, r.Allowed)
		leave()
		require.ErrorIs(t, r.Wait(ctx), context.Canceled)
		assert.False(t, r.Allowed)
		assert.Eventually(t, func() bool {
			d, err := l.Peek(t.Context(), "a")
			return err == nil && d.ResetAfter <= before
		}, unhurried, time.Millisecond)
	})
}

func TestWait_RefusesAtOnceWhatCannotBeGoodInTime(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ratelimit.Store) {
		l := newLimiter(t, store, hourly(1))
		ctx, cancel := context.WithTimeout(t.Context(), unhurried)
		defer cancel()
		require.NoError(t, l.Wait(ctx, "a", 1))
		require.ErrorIs(t, l.Wait(ctx, "a", 1), ratelimit.ErrLimited)
		require.NoError(t, ctx.Err())
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, l.Wait(ended, "b", 1), context.Canceled)
		assert.True(t, must.Get(l.Peek(t.Context(), "b"))(t).Allowed, "took nothing")
	})
}

// TestMaxWaiters_MoreGetADenial has one caller wait, so the next ones get no permits in advance.
func TestMaxWaiters_MoreGetADenial(t *testing.T) {
	l := newLimiter(t, ratelimit.Memory(),
		ratelimit.Limit{Permits: 1, Per: time.Hour, MaxWait: 24 * time.Hour},
		ratelimit.MaxWaiters(1))
	require.NoError(t, l.Wait(t.Context(), "a", 1))
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- l.Wait(ctx, "a", 1) }()
	require.Eventually(t, func() bool {
		r := must.Get(l.Reserve(t.Context(), "a", 1))(t)
		r.Cancel()
		return !r.Allowed
	}, time.Minute, time.Millisecond)
	require.ErrorIs(t, l.Wait(t.Context(), "a", 1), ratelimit.ErrLimited)
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	require.True(t, must.Get(l.Reserve(t.Context(), "a", 1))(t).Allowed)
}

// TestReservation_WaitCountsFromTheReservation waits for permits that are good already. Without a
// sleep Wait does not see that its context has ended.
func TestReservation_WaitCountsFromTheReservation(t *testing.T) {
	l := newLimiter(t, ratelimit.Memory(),
		ratelimit.Limit{Permits: 1, Per: 50 * time.Millisecond, MaxWait: time.Minute})
	var r *ratelimit.Reservation
	for r == nil || r.Delay == 0 {
		r = must.Get(l.Reserve(t.Context(), "k", 1))(t)
	}
	time.Sleep(r.Delay)
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, r.Wait(ended))
	require.NoError(t, r.Wait(ended), "again")
}

func TestSetLimit_KeepsPermitsTaken(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ratelimit.Store) {
		l := newLimiter(t, store, hourly(2))
		must.Get(l.Allow(t.Context(), "a", 2))(t)
		require.NoError(t, l.SetLimit(hourly(10)))
		assert.LessOrEqual(t, must.Get(l.Peek(t.Context(), "a"))(t).Remaining, 8)
		assert.Equal(t, 10, must.Get(l.Peek(t.Context(), "b"))(t).Remaining)
		require.Error(t, l.SetLimit(ratelimit.Limit{}))
		assert.Equal(t, 10, must.Get(l.Peek(t.Context(), "b"))(t).Remaining)
	})
}

func TestWindows_AdmitTheirPermits(t *testing.T) {
	for _, algorithm := range []ratelimit.Algorithm{
		ratelimit.FixedWindow, ratelimit.SlidingWindow, ratelimit.SlidingLog,
	} {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		l := newLimiter(t, ratelimit.Memory(),
			ratelimit.Limit{Permits: 3, Per: time.Minute, Algorithm: algorithm},
			ratelimit.Clock(func() time.Time { return at }))
		for i := range 4 {
			d := must.Get(l.Allow(t.Context(), "a", 1))(t)
			assert.Equal(t, i < 3, d.Allowed, "%v %d", algorithm, i)
		}
		at = at.Add(2 * time.Minute)
		assert.True(t, must.Get(l.Allow(t.Context(), "a", 3))(t).Allowed, "%v", algorithm)
	}
}

// TestRedis_ProcessesWithTwoAlgorithmsKeepBothLimits has processes whose limits differ in the
// algorithm, as while a new release is deployed. Each algorithm admits its limit once.
func TestRedis_ProcessesWithTwoAlgorithmsKeepBothLimits(t *testing.T) {
	store := ratelimit.Redis(redisAt(t, servers.Redis(t).Addr()))
	var limiters []*ratelimit.Limiter
	for _, algorithm := range []ratelimit.Algorithm{
		ratelimit.TokenBucket, ratelimit.FixedWindow, ratelimit.SlidingLog,
	} {
		limiters = append(limiters, newLimiter(t, store,
			ratelimit.Limit{Permits: 5, Per: 24 * time.Hour, Algorithm: algorithm}))
	}
	admitted := 0
	for range 20 {
		for _, l := range limiters {
			if must.Get(l.Allow(t.Context(), "a", 1))(t).Allowed {
				admitted++
			}
		}
	}
	require.Equal(t, 5*len(limiters), admitted)
}

func TestRedis_SamePrefixSharesPermits(t *testing.T) {
	client := redisAt(t, servers.Redis(t).Addr())
	one := newLimiter(t, ratelimit.Redis(client), hourly(2), ratelimit.Prefix("x:"))
	two := newLimiter(t, ratelimit.Redis(client), hourly(2), ratelimit.Prefix("x:"))
	other := newLimiter(t, ratelimit.Redis(client), hourly(2), ratelimit.Prefix("y:"))
	require.True(t, must.Get(one.Allow(t.Context(), "a", 2))(t).Allowed)
	assert.False(t, must.Get(two.Allow(t.Context(), "a", 1))(t).Allowed)
	assert.True(t, must.Get(other.Allow(t.Context(), "a", 2))(t).Allowed)
	keys := must.Get(client.Keys(t.Context(), "*").Result())(t)
	assert.ElementsMatch(t, []string{"x:a", "y:a"}, keys)
}

// TestRedis_RingKeepsEachKeyOnOneServer has many callers ask at the same time, so that requests for
// keys of both servers wait together.
func TestRedis_RingKeepsEachKeyOnOneServer(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{
			"a": servers.Redis(t).Addr(), "b": servers.Redis(t).Addr(),
		},
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
	})
	t.Cleanup(func() { _ = ring.Close() })
	const keys = 16
	l := newLimiter(t, ratelimit.Redis(ring), hourly(1))
	var admitted atomic.Int64
	var all sync.WaitGroup
	for caller := range 32 {
		all.Go(func() {
			for i := range 10 * keys {
				d, err := l.Allow(context.Background(), strconv.Itoa((caller+i)%keys), 1)
				if assert.NoError(t, err) && d.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, keys, admitted.Load())
}

func TestRedis_WithoutRedisTheOptionDecides(t *testing.T) {
	server := servers.Redis(t)
	client := redisAt(t, server.Addr())
	closed := newLimiter(t, ratelimit.Redis(client), hourly(2))
	open := newLimiter(t, ratelimit.Redis(client), hourly(2), ratelimit.FailOpen())
	local := newLimiter(t, ratelimit.Redis(client), hourly(2), ratelimit.FailLocal())
	require.NoError(t, server.Stop())
	admitted := map[string]int{}
	for range 5 {
		_, err := closed.Allow(t.Context(), "a", 1)
		require.ErrorIs(t, err, ratelimit.ErrUnavailable)
		require.NotEqual(t, ratelimit.ErrUnavailable.Error(), err.Error(), "it has no cause")
		require.ErrorContains(t, err, server.Addr(), "also while it calls Redis rarely")
		if must.Get(open.Allow(t.Context(), "a", 1))(t).Allowed {
			admitted["open"]++
		}
		if must.Get(local.Allow(t.Context(), "a", 1))(t).Allowed {
			admitted["local"]++
		}
	}
	assert.Equal(t, map[string]int{"open": 5, "local": 2}, admitted)
	_, err := closed.Peek(t.Context(), "a")
	require.ErrorIs(t, err, ratelimit.ErrUnavailable)
}

// TestAllow_NamesWhyRedisDidNotDecide checks the error of a wrong setting, and that it is no error
// of the caller's context.
func TestAllow_NamesWhyRedisDidNotDecide(t *testing.T) {
	addr := servers.Redis(t).Addr()
	require.NoError(t, redisAt(t, addr).ConfigSet(t.Context(), "requirepass", "a secret").Err())
	refused := newLimiter(t, ratelimit.Redis(redisAt(t, addr)), hourly(2))
	_, err := refused.Allow(t.Context(), "a", 1)
	require.ErrorIs(t, err, ratelimit.ErrUnavailable)
	require.ErrorContains(t, err, "NOAUTH")
	silent := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	hangs := newLimiter(t, ratelimit.Redis(redisAt(t, silent.Addr().String())), hourly(2),
		ratelimit.Timeout(time.Millisecond))
	_, err = hangs.Allow(t.Context(), "a", 1)
	require.ErrorIs(t, err, ratelimit.ErrUnavailable)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	_, err = hangs.Peek(t.Context(), "a")
	require.ErrorIs(t, err, ratelimit.ErrUnavailable)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestAllow_RejectsLessThanOnePermit(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ratelimit.Store) {
		l := newLimiter(t, store, hourly(2))
		for _, n := range []int{0, -1} {
			_, err := l.Allow(t.Context(), "a", n)
			require.ErrorIs(t, err, ratelimit.ErrPermits)
		}
	})
}

func TestNew_NamesTheInvalidField(t *testing.T) {
	shared := ratelimit.Redis(redisAt(t, "127.0.0.1:1")) // New makes no call
	second := ratelimit.Limit{Permits: 1, Per: time.Second}
	for name, c := range map[string]struct {
		store   ratelimit.Store
		limit   ratelimit.Limit
		options []ratelimit.Option
		says    string
	}{
		"no limit": {says: ": permits: "},
		"no per":   {limit: ratelimit.Limit{Permits: 1}, says: ": per: "},
		"negative": {limit: ratelimit.Limit{Permits: -1, Per: time.Second}, says: ": permits: "},
		"too many": {
			limit: ratelimit.Limit{Permits: 1e9 + 1, Per: time.Hour}, says: ": permits: ",
		},
		"too fine": {limit: ratelimit.Limit{Permits: 1, Per: time.Microsecond}, says: ": per: "},
		"too long": {limit: ratelimit.Limit{Permits: 1, Per: 25 * time.Hour}, says: ": per: "},
		"burst": {
			limit: ratelimit.Limit{Permits: 1, Per: time.Second, Burst: -1}, says: "burst",
		},
		"wait": {
			limit: ratelimit.Limit{Permits: 1, Per: time.Second, MaxWait: 48 * time.Hour},
			says:  "maxWait",
		},
		"algorithm": {
			limit: ratelimit.Limit{Permits: 1, Per: time.Second, Algorithm: 9}, says: "algorithm",
		},
		"no client": {store: ratelimit.Redis(nil), limit: second, says: "client"},
		"nil client": {
			store: ratelimit.Redis((*redis.ClusterClient)(nil)), limit: second, says: "client",
		},
		"log in Redis": {
			store: shared, says: ": permits: a sliding_log ",
			limit: ratelimit.Limit{Permits: 101, Per: time.Second, Algorithm: ratelimit.SlidingLog},
		},
		"too fast": {
			limit: ratelimit.Limit{Permits: 2000, Per: time.Millisecond}, says: ": permits: ",
		},
		"long burst": {
			limit: ratelimit.Limit{Permits: 1, Per: 24 * time.Hour, Burst: 367},
			says:  ": permits: ",
		},
		"long window": {
			says: ": permits: ",
			limit: ratelimit.Limit{
				Permits: 1e9, Per: 24 * time.Hour, Algorithm: ratelimit.SlidingWindow,
			},
		},
		"leases": {
			limit: second, options: []ratelimit.Option{ratelimit.Leases(2000)}, says: "leases",
		},
		"name": {limit: second, options: []ratelimit.Option{ratelimit.Name("a b")}, says: "name"},
		"fine wait": {
			limit: ratelimit.Limit{Permits: 1, Per: time.Second, MaxWait: 1}, says: "maxWait",
		},
		"timeout": {
			limit: second, options: []ratelimit.Option{ratelimit.Timeout(-1)}, says: "timeout",
		},
		"waiters": {
			limit: second, options: []ratelimit.Option{ratelimit.MaxWaiters(-1)},
			says: "maxWaiters",
		},
		"processes": {
			limit: second, options: []ratelimit.Option{ratelimit.Processes(-1)}, says: "processes",
		},
	} {
		_, err := ratelimit.New(c.store, c.limit, c.options...)
		assert.ErrorContains(t, err, c.says, name)
	}
}

func TestReservation_AddHeadersAppendsToTheList(t *testing.T) {
	header := http.Header{}
	for _, name := range []string{"one", "two"} {
		l := newLimiter(t, ratelimit.Memory(), hourly(2), ratelimit.Name(name))
		must.Get(l.ReserveNow(t.Context(), "a", 1))(t).AddHeaders(header)
	}
	assert.Equal(t, http.Header{
		"Ratelimit":        {`"one";r=1;t=3600`, `"two";r=1;t=3600`},
		"Ratelimit-Policy": {`"one";q=2;w=7200`, `"two";q=2;w=7200`},
	}, header)
}

// TestNew_TakesEveryInterval has the rates 1000/i a second as one permit in i ms and as 1,000 in i
// s.
func TestNew_TakesEveryInterval(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := ratelimit.Clock(func() time.Time { return at })
	for i := 1; i <= 1000; i++ {
		l := newLimiter(t, ratelimit.Memory(),
			ratelimit.Limit{Permits: 1000, Per: time.Duration(i) * time.Second, Burst: 1}, clock)
		require.True(t, must.Get(l.Allow(t.Context(), "a", 1))(t).Allowed)
		require.Equal(t, time.Duration(i)*time.Millisecond,
			must.Get(l.Allow(t.Context(), "a", 1))(t).RetryAfter, "1000/%d", i)
		require.NoError(t, l.SetLimit(
			ratelimit.Limit{Permits: 1, Per: time.Duration(i) * time.Millisecond, Burst: 1}))
		require.Equal(t, time.Duration(i)*time.Millisecond,
			must.Get(l.Allow(t.Context(), "a", 1))(t).RetryAfter, "1000/%d", i)
	}
}

// TestSlidingWindow_IsExactWhileSmall has a caller take 10 permits at the end of one second. It
// comes back at the end of the next, within a second. A weighted window would give it 9 more.
func TestSlidingWindow_IsExactWhileSmall(t *testing.T) {
	second := func(permits int) bool {
		at := time.Date(2026, 1, 1, 0, 0, 0, 999_000_000, time.UTC)
		l := newLimiter(t, ratelimit.Memory(),
			ratelimit.Limit{Permits: permits, Per: time.Second, Algorithm: ratelimit.SlidingWindow},
			ratelimit.Clock(func() time.Time { return at }))
		require.True(t, must.Get(l.Allow(t.Context(), "a", permits))(t).Allowed)
		at = at.Add(999 * time.Millisecond)
		return must.Get(l.Allow(t.Context(), "a", 1))(t).Allowed
	}
	assert.False(t, second(10))
	assert.False(t, second(100))
	assert.True(t, second(101), "an estimate")
}

// TestSlidingWindow_SharesALogInRedis has two processes with a limit of three an hour.
func TestSlidingWindow_SharesALogInRedis(t *testing.T) {
	client := redisAt(t, servers.Redis(t).Addr())
	limit := ratelimit.Limit{Permits: 3, Per: time.Hour, Algorithm: ratelimit.SlidingWindow}
	one := newLimiter(t, ratelimit.Redis(client), limit)
	two := newLimiter(t, ratelimit.Redis(client), limit)
	require.True(t, must.Get(one.Allow(t.Context(), "a", 2))(t).Allowed)
	require.True(t, must.Get(two.Allow(t.Context(), "a", 1))(t).Allowed)
	require.False(t, must.Get(one.Allow(t.Context(), "a", 1))(t).Allowed)
	limit.Permits, limit.Algorithm = 101, ratelimit.SlidingLog
	require.ErrorContains(t, one.SetLimit(limit), "permits: a sliding_log of more than 100 permits")
}

// TestFailLocal_DividesByProcesses has four processes without a Redis.
func TestFailLocal_DividesByProcesses(t *testing.T) {
	client := redisAt(t, "127.0.0.1:1")
	for _, limit := range []ratelimit.Limit{
		{Permits: 20, Per: time.Hour, Algorithm: ratelimit.FixedWindow},
		{Permits: 20, Per: time.Hour, Algorithm: ratelimit.SlidingWindow},
	} {
		n := 0
		for range 4 {
			l := newLimiter(t, ratelimit.Redis(client), limit, ratelimit.FailLocal(),
				ratelimit.Processes(4))
			for range 40 {
				if must.Get(l.Allow(t.Context(), "a", 1))(t).Allowed {
					n++
				}
			}
		}
		assert.Equal(t, 20, n)
	}
}
