// Package rls has the requirements of envoyproxy/ratelimit, which would change those of the
// benchmark.
package rls
