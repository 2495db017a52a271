// Package benchratelimit compares the rate limiter with others, in one run: make bench-ratelimit.
// It is a module of its own, so that the others are no dependencies of the program.
package benchratelimit
