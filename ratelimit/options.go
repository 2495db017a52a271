package ratelimit

import (
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Option changes a setting of a Limiter.
type Option func(*settings)

type settings struct {
	name      string
	prefix    string
	leases    int
	onError   rules.OnError
	timeout   time.Duration
	waiters   int
	processes int
	now       func() time.Time
}

// check names an option that is negative. The limiter's rule checks the others.
func (s settings) check() error {
	for name, value := range map[string]int{
		"timeout": int(s.timeout), "maxWaiters": s.waiters, "processes": s.processes,
	} {
		if value < 0 {
			return fmt.Errorf("ratelimit: %s: must not be negative", name)
		}
	}
	return nil
}

// Name is the limiter's name in RateLimit headers: a letter and up to 63 letters, digits, _ or -.
// The default is "limiter".
func Name(name string) Option { return func(s *settings) { s.name = name } }

// Prefix comes before every key in Redis, and separates this Limiter's keys from other data. It is
// "ratelimit:" by default. Between it and a window's key is the kind of the window, such as "-f:".
func Prefix(prefix string) Option { return func(s *settings) { s.prefix = prefix } }

// Leases lets this process take up to n permits of a hot key in advance, 0 to 1000. It hands them
// out without a call to Redis. From 2, it may take the permits of a millisecond where these are
// more, but then all Processes together take a burst at most. Requests for several permits always
// call Redis. The default is 0.
func Leases(n int) Option { return func(s *settings) { s.leases = n } }

// FailOpen admits every request while Redis does not answer, in place of ErrUnavailable.
func FailOpen() Option { return func(s *settings) { s.onError = rules.OnErrorOpen } }

// FailLocal decides in this process' memory, by this process' share of the limit, while Redis does
// not answer: see Processes. Afterwards it charges Redis for the permits of a token bucket. A
// window is not charged: around a failure up to twice its permits pass.
func FailLocal() Option { return func(s *settings) { s.onError = rules.OnErrorLocal } }

// Processes is how many processes share the Redis; 0 is the default of 1. FailLocal admits the
// limit divided by it, but at least one permit. It bounds what Leases take of a fast limit.
func Processes(n int) Option { return func(s *settings) { s.processes = n } }

// Timeout bounds one decision of Redis. 0 is the default of 50 ms.
func Timeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// MaxWaiters bounds how many callers may wait for permits at once. More get a denial. 0 is the
// default of 10,000.
func MaxWaiters(n int) Option { return func(s *settings) { s.waiters = n } }

// Clock replaces the clock of the Memory store, for tests. It must never go back. Redis has its
// own.
func Clock(now func() time.Time) Option { return func(s *settings) { s.now = now } }
