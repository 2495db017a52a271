// Package rules reads the rules of the rate limiter and applies operators' changes.
//
// A rule names a limit, the routes it applies to and the attributes it counts by. The
// file is read once, at the start, and strictly. Operators change limits while the
// program runs; Admin stores the changes in Redis, and each node's Sync reads them into
// its Rulebook.
package rules
