// Package limitservice offers the rate limiter to other programs: by Envoy's rate limit service v3
// over gRPC, and by JSON over HTTP. Both use the same rules and limiters. With the rules file and
// the Redis of an API they share the API's limiters, too.
//
// The callers are not authenticated, so the addresses must be private.
package limitservice
