// Package ratelimit decides who may go on and who must wait or come back.
//
// # What it promises
//
// A limiter admits in any window of length T at most burst + rate × T permits,
// over all nodes together, whatever the nodes' clocks say. The arithmetic is in
// whole numbers: no fraction of a permit is floored away or given twice. With
// leases a window may see up to nodes × lease more; the long run sees none.
//
// # How it is built
//
//   - limit.go, terms.go: what is allowed, and the same made ready to compute
//   - bucket.go, window.go: the arithmetic, pure; scripts/lua has its twin
//   - local*.go and their like: the family in one process, with a clock of one's own
//   - redis.go: the same limits for all nodes, one atomic script a decision
//   - rule*.go: named rules from a file and from operators, live
//   - gate*.go: what a request meets: rules, memory of denials, leases, breaker
//
// # Imports
//
// The arithmetic and the in-process family import the standard library alone;
// go-redis is for the redis*.go files, YAML for the rules. Never gin.
package ratelimit
