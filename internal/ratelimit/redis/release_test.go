package redislimit_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// release is one release of this program. It reports whether its script grants a permit.
type release func(key string, p ratelimit.Params) bool

// older is the release whose script is in a file.
func older(t *testing.T, client *redis.Client, file string, clock *testclock.Clock) release {
	script := redis.NewScript(string(must.Get(os.ReadFile(file))(t)))
	return func(key string, p ratelimit.Params) bool {
		reply := must.Get(script.Run(t.Context(), client, []string{key}, clock.Now().UnixMicro(), 1,
			"t", string(p.Kind), 1, 1, 0, p.Cost, p.Scale, p.Free, p.Cap,
			p.MaxPermits).Int64Slice())(t)
		return reply[1] == 1
	}
}

func today(t *testing.T, client *redis.Client, clock *testclock.Clock) release {
	store := redislimit.New(client, clock.Now)
	return func(key string, p ratelimit.Params) bool {
		ask := ratelimit.Request{Key: key, Params: p, N: 1}
		return must.Get(store.TakeEach(t.Context(), ask))(t)[0].Allowed
	}
}

// TestScript_ReleasesReadEachOthersBuckets has the first script with this value of a bucket and
// today's share limiters, as they do during an upgrade. Together they keep the limit. Each sees the
// permits that the other one took. Only less than a microsecond may be lost at each.
func TestScript_ReleasesReadEachOthersBuckets(t *testing.T) {
	for name, client := range map[string]*redis.Client{
		"redis":     newClient(t, servers.Redis(t).Addr()),
		"miniredis": newClient(t, miniredis.RunT(t).Addr()),
	} {
		t.Run(name, func(t *testing.T) {
			for _, l := range []ratelimit.Limit{
				{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 700, Burst: 20},
				{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1000, Burst: 20},
				{Algorithm: ratelimit.Nginx, PermitsPerSecond: 300, Burst: 19, NoDelay: true},
			} {
				clock, p := testclock.New(), must.Get(l.Params())(t)
				releases := []release{
					older(t, client, "testdata/ratelimit_decide_1.lua", clock),
					today(t, client, clock),
				}
				key := fmt.Sprint(l.Algorithm, l.PermitsPerSecond)
				admitted := 0
				const length = 200 * time.Millisecond
				for i := range int(length / time.Millisecond) {
					clock.Add(time.Millisecond)
					for j := range 2 { // one before the other, and then the other way round
						for k := range 30 {
							if !releases[(i+j)%2](key, p) {
								break
							}
							require.Less(t, k, 29, "a bucket without an end")
							admitted++
						}
					}
				}
				most := 20 + l.PermitsPerSecond*(length-time.Millisecond).Seconds()
				require.LessOrEqual(t, float64(admitted), most, "%+v", l)
				require.GreaterOrEqual(t, float64(admitted), most-2, "%+v", l)
			}
		})
	}
}
