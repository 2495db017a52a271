package rules

import "flashsale.dev/seckill/internal/ratelimit"

// Defaults are the rules of every installation. /randomPath has 1000/s for each goods over all
// nodes, and 20/s for each user in each node's memory, which costs no call to Redis. Signing in has
// 20/s for each address, also in each node's memory. They need no file, because a sale without a
// rule would have no protection.
func Defaults() []Rule {
	return []Rule{
		{
			Name: "randomPath", Route: "/randomPath", By: []string{"goods"}, Leases: 10,
			Change: Change{
				Algorithm: ptr(ratelimit.Reserve), PermitsPerSecond: ptr(1000.0),
				MaxBurstSeconds: ptr(1.0), MaxWaitMillis: ptr(int64(1000)),
			},
		},
		{
			Name: "randomPathPerUser", Route: "/randomPath", By: []string{"user"}, Scope: ScopeNode,
			Change: Change{
				Algorithm: ptr(ratelimit.TokenBucket), PermitsPerSecond: ptr(20.0),
				MaxBurstSeconds: ptr(1.0),
			},
		},
		{
			Name: "session", Route: "POST /session", By: []string{"ip"}, Scope: ScopeNode,
			Change: Change{
				Algorithm: ptr(ratelimit.TokenBucket), PermitsPerSecond: ptr(20.0),
				MaxBurstSeconds: ptr(2.0),
			},
		},
	}
}

func ptr[T any](v T) *T { return &v }
