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
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
	"flashsale.dev/seckill/scripts/lua"
)

// release is the script of one release of this program. takes reports whether it grants a permit.
type release struct{ script *redis.Script }

func (r release) takes(
	t *testing.T, client *redis.Client, key string, p ratelimit.Params, now time.Time,
) bool {
	reply := must.Get(r.script.Run(t.Context(), client, []string{key}, now.UnixMicro(), 1, "t",
		string(p.Kind), 1, 1, 0, p.Cost, p.Scale, p.Free, p.Cap, p.MaxPermits).Int64Slice())(t)
	return reply[1] == 1
}

// TestScript_ReleasesReadEachOthersBuckets has the first script with this value of a bucket and
// today's share limiters, as they do during an upgrade. Together they keep the limit. Each sees the
// permits that the other one took. Only less than a microsecond may be lost at each.
func TestScript_ReleasesReadEachOthersBuckets(t *testing.T) {
	first := string(must.Get(os.ReadFile("testdata/ratelimit_decide_1.lua"))(t))
	releases := []release{
		{redis.NewScript(first)}, {redis.NewScript(lua.Source("ratelimit_decide"))},
	}
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
				key := fmt.Sprint(l.Algorithm, l.PermitsPerSecond)
				admitted := 0
				const length = 200 * time.Millisecond
				for i := range int(length / time.Millisecond) {
					clock.Add(time.Millisecond)
					for j := range 2 { // one before the other, and then the other way round
						for k := range 30 {
							if !releases[(i+j)%2].takes(t, client, key, p, clock.Now()) {
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
