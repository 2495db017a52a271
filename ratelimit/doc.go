// Package ratelimit limits how often something happens, by key, in one process or over all
// processes that share a Redis.
//
//	limiter, err := ratelimit.New(ratelimit.Redis(client), ratelimit.Limit{
//		Permits: 100, Per: time.Second, Burst: 20,
//	}, ratelimit.Prefix("login:"))
//	d, err := limiter.Allow(ctx, "alice", 1)
//
// # Guarantee
//
// With TokenBucket, any interval of length T admits at most Burst + Permits × T / Per permits of a
// key, over all processes together. One request for more than Burst permits, which MaxWait admits,
// gets them at one moment, after it has waited for those above Burst. Redis' clock decides, so the
// processes' clocks do not matter. Leases may add processes × leases or one burst to an interval,
// whichever is more, and nothing in the long run. All arithmetic is in whole numbers: no fraction
// of a permit is lost or granted twice.
//
// # Errors
//
// A denial is no error: Allow and Reserve report it in the Decision. Wait, which has no other way
// to report it, returns ErrLimited. ErrUnavailable means that Redis did not decide in time;
// FailOpen and FailLocal choose another answer. Every other error is the context's, or ErrPermits.
//
// # Subpackages
//
// httplimit is middleware for net/http, ginlimit for gin, and grpclimit has interceptors for gRPC
// servers. This package imports neither gin nor gRPC.
package ratelimit
