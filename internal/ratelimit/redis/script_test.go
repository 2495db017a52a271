package redislimit_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/scripts/lua"
)

// TestScripts_HeadersNameAllArguments compares each script's header with its body. The header names
// every KEYS and ARGV entry that the body reads. No script computes a key.
func TestScripts_HeadersNameAllArguments(t *testing.T) {
	for _, name := range []string{
		"ratelimit_decide", "ratelimit_sync", "ratelimit_set", "ratelimit_restore",
	} {
		source := lua.Source(name)
		header, body, ok := strings.Cut(source, "\n\n")
		require.True(t, ok)
		require.Contains(t, header, "-- KEYS[")
		require.Contains(t, header, "-- Returns")
		for _, used := range regexp.MustCompile(`(KEYS|ARGV)\[(\d+)\]`).FindAllString(body, -1) {
			require.Contains(t, header, used, "%s reads %s", name, used)
		}
		require.NotRegexp(t, `redis\.p?call\('[A-Z]+', [^)]*\.\.`, body,
			"a key is built in the script")
	}
	require.Contains(t, lua.Source("ratelimit_decide"), "local STRIDE = 11")
	require.Panics(t, func() { lua.Source("none") })
}

// TestScript_GroupIsAdmittedTogetherOrNotAtAll runs the script as nginx does, with several limits
// in a group. Each group sees the permits that the one before it left.
func TestScript_GroupIsAdmittedTogetherOrNotAtAll(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	decide := redis.NewScript(lua.Source("ratelimit_decide"))
	// ask requests one permit of a bucket of each size. Each permit takes an hour to refill.
	ask := func(groups ...[]int64) (verdicts []int64) {
		var keys []string
		args := []any{""}
		for g, sizes := range groups {
			for _, size := range sizes {
				const hour = int64(3_600_000_000)
				keys = append(keys, fmt.Sprint("{k}:", size))
				args = append(args, g, "t", "b", 1, 1, 0, hour, 1, size*hour, size*hour, size)
			}
		}
		reply := must.Get(decide.Run(t.Context(), client, keys, args...).Int64Slice())(t)
		for at := 1; at < len(reply); at += 6 {
			verdicts = append(verdicts, reply[at])
		}
		return verdicts
	}
	require.Equal(t, []int64{1, 1}, ask([]int64{10, 2}))
	require.Equal(t, []int64{1, 1, 1, 0, 1, 1}, ask([]int64{10, 2}, []int64{10, 2}, []int64{3, 3}))
	require.Equal(t, []int64{1, 0, 1, 0}, ask([]int64{3, 3}, []int64{3}, []int64{3}),
		"one key twice: both permits or none")
	for left := range 9 { // the denied group took no permit of the wider limit
		require.Equal(t, []int64{int64(1 - left/8)}, ask([]int64{10}))
	}
}

// TestScript_StoresTheTimeToFullAsExpiry checks a value that was written by Redis' own clock. It
// has the moment of the decision with all its digits, and Redis drops it in the millisecond after
// it is full.
func TestScript_StoresTheTimeToFullAsExpiry(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	store := redislimit.New(client, nil)
	p := must.Get(ratelimit.Limit{
		Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1, Burst: 1_000_000,
	}.Params())(t)
	for padded := false; !padded; { // up to a tenth of a second whose microseconds begin with a zero
		d := must.Get(store.TakeEach(t.Context(),
			ratelimit.Request{Key: "k", Params: p, N: 1}))(t)[0]
		full := d.At.Add(d.ResetAfter)
		require.Equal(t, fmt.Sprintf("b %d 0 1%016d%016d %d", full.UnixMicro(), p.Cost, p.Free,
			d.At.UnixMicro()), client.Get(t.Context(), "k").Val())
		require.Equal(t, full.UnixMilli(),
			client.PExpireTime(t.Context(), "k").Val().Milliseconds())
		padded = d.At.Nanosecond() < 100_000_000
	}
}

// TestScript_KeepsEachKindUntilItIsFull checks the expiry by Redis' own clock. A key that is gone
// before its limiter is full would admit the limit again.
func TestScript_KeepsEachKindUntilItIsFull(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	store := redislimit.New(client, nil)
	for algorithm, extra := range map[ratelimit.Algorithm]time.Duration{
		ratelimit.TokenBucket: 0, ratelimit.SmoothBursty: 24 * time.Hour, ratelimit.FixedWindow: 0,
		ratelimit.SlidingWindow: 0, ratelimit.SlidingLog: 0,
	} {
		p := must.Get(ratelimit.Limit{
			Algorithm: algorithm, Limit: 50, IntervalSeconds: 1800, MaxBurstSeconds: 3600,
			MaxWaitMillis: 600_000,
		}.Params())(t)
		request := ratelimit.Request{Key: string(algorithm), Params: p, N: 1, MaxWait: p.MaxWait()}
		for range 2 { // the second one finds a state
			for _, d := range must.Get(store.TakeEach(t.Context(), request, request))(t) {
				require.True(t, d.Allowed, algorithm)
				full := d.At.Add(d.ResetAfter + extra)
				until := client.PExpireTime(t.Context(), request.Key).Val().Milliseconds()
				require.WithinRange(t, time.UnixMilli(until), full,
					full.Add(time.Minute), algorithm)
			}
		}
	}
}

// TestScript_RefusesMalformedRequests checks that they are errors, and write nothing.
func TestScript_RefusesMalformedRequests(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	decide := redis.NewScript(lua.Source("ratelimit_decide"))
	ask := func(change int, value any) error {
		args := []any{"", 0, "t", "b", 1, 1, 0, 1000, 1, 5000, 5000, 5}
		args[change] = value
		return decide.Run(t.Context(), client, []string{"k"}, args...).Err()
	}
	for at, value := range map[int]any{3: "x", 4: "0", 5: "0", 7: "0", 8: "0"} {
		require.ErrorContains(t, ask(at, value), "is malformed", at)
	}
	for _, value := range []string{"", "-1", "1.5", "many", "1e3", "nan"} {
		require.ErrorContains(t, ask(4, value), "not a whole number", value)
		require.ErrorContains(t, ask(5, value), "not a whole number", value)
	}
	require.Zero(t, client.DBSize(t.Context()).Val())
	require.NoError(t, ask(4, "1"))
}
