package limitservice

import (
	"math"
	"time"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// override returns the limit that Envoy sends with a descriptor, or nil. It replaces the rule's
// rate and keeps its algorithm. A bucket holds the requests of one unit.
func override(
	rule *rules.Compiled, sent *descriptorv3.RateLimitDescriptor_RateLimitOverride,
) (*ratelimit.Params, error) {
	if sent == nil {
		return nil, nil
	}
	length := map[typev3.RateLimitUnit]time.Duration{
		typev3.RateLimitUnit_SECOND: time.Second, typev3.RateLimitUnit_MINUTE: time.Minute,
		typev3.RateLimitUnit_HOUR: time.Hour, typev3.RateLimitUnit_DAY: 24 * time.Hour,
	}[sent.GetUnit()]
	if length == 0 {
		return nil, ratelimit.BadField("limit.unit", "must be SECOND, MINUTE, HOUR or DAY")
	}
	limit, seconds := int64(sent.GetRequestsPerUnit()), length.Seconds()
	change := rules.Change{Limit: &limit, IntervalSeconds: &seconds}
	if a := rule.WithDefaults().Algorithm; a == ratelimit.TokenBucket || a == ratelimit.Reserve {
		change.Burst = &limit
	}
	params, err := change.Apply(rule.WithDefaults()).Params()
	if err == nil && rule.Scope == rules.ScopeGlobal {
		err = params.CheckRedis()
	}
	return &params, err
}

// unit is one of Envoy's units of time, with its length in seconds.
type unit struct {
	name    ratelimitv3.RateLimitResponse_RateLimit_Unit
	seconds float64
}

// currentLimit returns a limit in Envoy's units: of a window, the largest unit that divides it; of
// a rate, the smallest unit in which it is a whole number. A rate that is whole in no unit is
// rounded.
func currentLimit(name string, l ratelimit.Limit) *ratelimitv3.RateLimitResponse_RateLimit {
	units := [...]unit{
		{ratelimitv3.RateLimitResponse_RateLimit_SECOND, 1},
		{ratelimitv3.RateLimitResponse_RateLimit_MINUTE, 60},
		{ratelimitv3.RateLimitResponse_RateLimit_HOUR, 3600},
		{ratelimitv3.RateLimitResponse_RateLimit_DAY, 86400},
	}
	rate := l.PermitsPerSecond
	if rate == 0 {
		for i := len(units) - 1; i >= 0; i-- {
			times := l.IntervalSeconds / units[i].seconds
			if times >= 1 && times == math.Trunc(times) {
				return rateLimit(name, float64(l.Limit), units[i], times)
			}
		}
		rate = float64(l.Limit) / l.IntervalSeconds
	}
	for _, u := range units {
		if n := rate * u.seconds; n == math.Trunc(n) {
			return rateLimit(name, n, u, 1)
		}
	}
	day := units[len(units)-1]
	return rateLimit(name, math.Round(rate*day.seconds), day, 1)
}

func rateLimit(
	name string, n float64, u unit, times float64,
) *ratelimitv3.RateLimitResponse_RateLimit {
	l := &ratelimitv3.RateLimitResponse_RateLimit{
		Name: name, RequestsPerUnit: uint32(min(n, math.MaxUint32)), Unit: u.name,
	}
	if times > 1 {
		l.UnitMultiplier = wrapperspb.UInt32(uint32(times))
	}
	return l
}
