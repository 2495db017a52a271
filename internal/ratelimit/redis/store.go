// Package redislimit keeps limiters in Redis, for all nodes. One atomic Lua script,
// scripts/lua/ratelimit_decide.lua, decides by Redis' clock. Publisher publishes the script's SHA-1
// for nginx, which runs the same script.
//
// The package is in the folder redis. Its name differs from go-redis' package.
package redislimit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/scripts/lua"
)

// Store decides requests in Redis. It has no state of its own and no deadline but the
// context's and the client's. It is safe for many goroutines.
type Store struct {
	client redis.UniversalClient
	script *redis.Script
	now    func() time.Time
}

// New makes a store on a client. now replaces Redis' clock in tests. Pass nil otherwise, because
// the clocks of production nodes differ.
func New(client redis.UniversalClient, now func() time.Time) *Store {
	return &Store{client: client, script: redis.NewScript(lua.Source("ratelimit_decide")), now: now}
}

// The script's operations, verdicts and sizes, as in its header.
const (
	opTake   = "t"
	opPeek   = "p"
	opRefund = "r"

	verdictDenied  = 0
	verdictAllowed = 1
	verdictNever   = 2

	requestSize = 11
	answerSize  = 6
)

// TakeEach decides groups of requests in one call, in order. It takes all permits of a group or
// none. It returns one decision for each group: the strictest of its requests. In a cluster all
// keys must share a hash slot. Errors are those of ratelimit.Check, a *ratelimit.FieldError for an
// algorithm without a script, or a failure of Redis. After a failure of Redis the permits may or
// may not be taken.
func (r *Store) TakeEach(
	ctx context.Context, groups ...[]ratelimit.Request,
) ([]ratelimit.Decision, error) {
	return r.run(ctx, opTake, nil, groups)
}

// Peek decides like TakeEach for one group and takes nothing.
func (r *Store) Peek(
	ctx context.Context, requests ...ratelimit.Request,
) (ratelimit.Decision, error) {
	decisions, err := r.run(ctx, opPeek, nil, [][]ratelimit.Request{requests})
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return decisions[0], nil
}

// Refund returns the permits of requests that were taken at booked, the Decision's At. It does not
// credit permits that have drained or belong to a window that is over.
func (r *Store) Refund(ctx context.Context, booked time.Time, requests ...ratelimit.Request) error {
	_, err := r.run(ctx, opRefund, &booked, [][]ratelimit.Request{requests})
	return err
}

// Reset drops limiters. It deletes each key alone, because in a cluster they may be in
// different slots.
func (r *Store) Reset(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := r.client.Del(ctx, key).Err(); err != nil {
			return fmt.Errorf("ratelimit: reset: %w", err)
		}
	}
	return nil
}

// run calls the script for groups. booked is nil except for a refund.
func (r *Store) run(
	ctx context.Context, op string, booked *time.Time, groups [][]ratelimit.Request,
) ([]ratelimit.Decision, error) {
	var keys []string
	args := []any{r.clock()}
	for g, group := range groups {
		if err := ratelimit.Check(group); err != nil {
			return nil, err
		}
		for _, q := range group {
			if !q.Params.InRedis() {
				return nil, ratelimit.BadField("algorithm", "%s works in one process only",
					q.Params.Limit().Algorithm)
			}
			keys = append(keys, q.Key)
			args = appendRequest(args, g, op, q, booked)
		}
	}
	reply, err := r.script.Run(ctx, r.client, keys, args...).Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("ratelimit: decide: %w", err)
	}
	if len(reply) != 1+answerSize*len(keys) {
		return nil, fmt.Errorf("ratelimit: decide: %d numbers for %d requests", len(reply),
			len(keys))
	}
	return readAnswers(reply, groups), nil
}

func (r *Store) clock() string {
	if r.now == nil {
		return ""
	}
	return strconv.FormatInt(r.now().UnixMicro(), 10)
}

// appendRequest appends the script's eleven arguments for a request.
func appendRequest(args []any, group int, op string, q ratelimit.Request, booked *time.Time) []any {
	wait := max(0, q.MaxWait.Microseconds())
	if booked != nil {
		wait = booked.UnixMicro()
	}
	least := q.Min
	if least == 0 {
		least = q.N
	}
	// MaxTicks permits are never granted; the bounds keep Lua's doubles exact.
	n := min(q.N, ratelimit.MaxTicks)
	p := q.Params
	return append(args, group, op, string(p.Kind), n, min(least, n),
		min(wait, 4*ratelimit.MaxTicks-1), p.Cost, p.Scale, p.Free, p.Cap, p.MaxPermits)
}

func readAnswers(reply []int64, groups [][]ratelimit.Request) []ratelimit.Decision {
	at := time.UnixMicro(reply[0]).UTC()
	reply = reply[1:]
	decisions := make([]ratelimit.Decision, 0, len(groups))
	for _, group := range groups {
		d := readAnswer(reply)
		for i := 1; i < len(group); i++ {
			d = ratelimit.Strictest(d, readAnswer(reply[i*answerSize:]))
		}
		reply = reply[len(group)*answerSize:]
		d.At = at
		decisions = append(decisions, d)
	}
	return decisions
}

func fromMicros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

func readAnswer(v []int64) ratelimit.Decision {
	return ratelimit.Decision{
		Allowed: v[0] == verdictAllowed, Never: v[0] == verdictNever,
		Granted: v[1], Wait: fromMicros(v[2]), Remaining: v[3],
		RetryAfter: fromMicros(v[4]), ResetAfter: fromMicros(v[5]),
	}
}
