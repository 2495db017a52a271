// Package ratelimit has the algorithms of the rate limiter and its in-process store. These packages
// use them: rules (the rules file and operators' changes), redis (the store that all nodes share)
// and gate (the decisions about requests). Imports have one direction: ratelimit, then rules and
// redis, then gate.
//
// # Guarantee
//
// In any window of length T a token bucket admits at most burst + rate × T permits, over all nodes
// together. The nodes' clocks do not matter. Leases may add nodes × lease to a window, and nothing
// in the long run.
//
// # Arithmetic
//
// All state is whole numbers, so that no fraction of a permit is lost or granted twice. Params are
// a Limit in that form. bucket.go is GCRA, the generic cell rate algorithm of ITU-T I.371; it
// serves token_bucket, reserve, nginx's limit_req, the leaky buckets and Guava's SmoothBursty.
// window.go has the windows. scripts/lua/ratelimit_decide.lua is the same arithmetic in Lua, and
// property tests compare both.
//
// This package imports the standard library alone.
package ratelimit
