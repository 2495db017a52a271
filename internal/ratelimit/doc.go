// Package ratelimit is the algorithms of the rate limiter and its in-process
// store. The packages below it use them: rules (the rules file and operators'
// changes), redis (the store that all nodes share) and gate (what a request
// meets). Imports go one way: ratelimit, then rules and redis, then gate.
//
// # Guarantee
//
// A token bucket admits in any window of length T at most burst + rate × T
// permits, over all nodes together, whatever the nodes' clocks say. Leases may
// add nodes × lease to a window, and nothing in the long run.
//
// # Arithmetic
//
// All state is whole numbers: no fraction of a permit is rounded away or granted
// twice. Params are a Limit in that form. bucket.go is GCRA, the generic cell rate
// algorithm of ITU-T I.371; it serves token_bucket, reserve, nginx's limit_req,
// the leaky buckets and Guava's SmoothBursty. window.go has the windows.
// scripts/lua/ratelimit_decide.lua is the same arithmetic in Lua, and property
// tests hold both against each other.
//
// This package imports the standard library alone.
package ratelimit
