// Package redislimit keeps limiters in Redis, for all nodes. One atomic Lua script,
// scripts/lua/ratelimit_decide.lua, decides by Redis' clock. Publisher publishes the script's SHA-1
// for nginx, which runs the same script.
//
// The package is in the folder redis. Its name differs from go-redis' package.
package redislimit

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/scripts/lua"
)

// Store decides requests in Redis. It keeps no limiter itself, and has no deadline but the
// context's and the client's. It is safe for many goroutines.
type Store struct {
	client redis.UniversalClient
	script *redis.Script
	now    func() time.Time
	short  atomic.Pointer[shortForm] // of the latest request
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

	answerSize = 6
)

// TakeEach decides requests in one call, in order. In a cluster all keys must share a hash slot.
// Errors are ratelimit.ErrPermits, a *ratelimit.FieldError for an algorithm without a script, or a
// failure of Redis. After a failure of Redis the permits may or may not be taken.
func (r *Store) TakeEach(
	ctx context.Context, requests ...ratelimit.Request,
) ([]ratelimit.Decision, error) {
	return r.run(ctx, opTake, nil, requests)
}

// Peek decides like TakeEach and takes nothing.
func (r *Store) Peek(
	ctx context.Context, request ratelimit.Request,
) (ratelimit.Decision, error) {
	decisions, err := r.run(ctx, opPeek, nil, []ratelimit.Request{request})
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return decisions[0], nil
}

// Refund returns the permits that the decision took. It credits no permits that have drained,
// belong to a window that is over, or were followed by others in a bucket.
func (r *Store) Refund(
	ctx context.Context, taken ratelimit.Decision, request ratelimit.Request,
) error {
	_, err := r.run(ctx, opRefund, &taken, []ratelimit.Request{request})
	return err
}

// Reset drops a limiter.
func (r *Store) Reset(ctx context.Context, key string) error {
	if err := r.client.Del(ctx, key).Err(); err != nil {
		return fmt.Errorf("ratelimit: reset: %w", err)
	}
	return nil
}

// run calls the script. taken is nil except for a refund. Each request is a group of its own,
// because a node's limits are decided apart; nginx joins several into a group.
func (r *Store) run(
	ctx context.Context, op string, taken *ratelimit.Decision, requests []ratelimit.Request,
) ([]ratelimit.Decision, error) {
	keys := make([]string, len(requests))
	for i := range requests {
		if err := requests[i].Validate(); err != nil {
			return nil, err
		}
		if err := requests[i].Params.CheckRedis(); err != nil {
			return nil, err
		}
		keys[i] = requests[i].Key
	}
	args := r.arguments(op, taken, requests)
	reply, err := r.script.Run(ctx, r.client, keys, args...).Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("ratelimit: decide: %w", err)
	}
	if len(reply) != 1+answerSize*len(keys) {
		return nil, fmt.Errorf("ratelimit: decide: %d numbers for %d requests", len(reply),
			len(keys))
	}
	decisions := make([]ratelimit.Decision, len(keys))
	for i := range decisions {
		decisions[i] = readAnswer(reply[1+answerSize*i:])
		decisions[i].At = time.UnixMicro(reply[0]).UTC()
	}
	return decisions, nil
}

func (r *Store) clock() string {
	if r.now == nil {
		return ""
	}
	return strconv.FormatInt(r.now().UnixMicro(), 10)
}

// arguments are the script's short form if it has one for the requests, else its list.
func (r *Store) arguments(
	op string, taken *ratelimit.Decision, requests []ratelimit.Request,
) []any {
	if op == opTake && len(requests) == 1 && requests[0].Params.Kind == ratelimit.KindBucket &&
		requests[0].Params.Cap < ratelimit.MaxTicks {
		return r.shortArguments(&requests[0])
	}
	args := []any{r.clock()}
	for i := range requests {
		args = appendRequest(args, i, op, requests[i], taken)
	}
	return args
}

// shortForm has the arguments of the script's short form that depend only on the limit and the
// longest wait. A store keeps the latest, because most of its requests have the same.
type shortForm struct {
	params ratelimit.Params
	most   int64 // the highest level for the caller's longest wait
	args   []any
}

func newShortForm(p ratelimit.Params, most int64) *shortForm {
	return &shortForm{p, most, []any{
		fmt.Sprintf(" %d%016d%016d ", p.Scale, p.Cost, p.Free), most,
	}}
}

// shortArguments leaves out the last arguments where they have the script's defaults, because Redis
// takes some time for each argument.
func (r *Store) shortArguments(q *ratelimit.Request) []any {
	most := q.Params.CapFor(q.MaxWait)
	form := r.short.Load()
	if form == nil || form.params != q.Params || form.most != most {
		form = newShortForm(q.Params, most)
		r.short.Store(form)
	}
	n, least := permits(q.N), permits(cmp.Or(q.Min, q.N))
	switch {
	case r.now != nil:
		return append(form.args[:2:2], n, least, r.clock())
	case n > 1:
		return append(form.args[:2:2], n, least)
	case most != q.Params.Free:
		return form.args
	}
	return form.args[:1]
}

// permits bounds n. MaxTicks permits are never granted, and Lua's doubles are exact.
func permits(n int64) int64 { return min(n, ratelimit.MaxTicks) }

// appendRequest appends the script's eleven arguments for a request.
func appendRequest(
	args []any, group int, op string, q ratelimit.Request, taken *ratelimit.Decision,
) []any {
	wait := max(0, q.MaxWait.Microseconds())
	if taken != nil {
		wait = q.Params.RefundMark(*taken)
	}
	p := q.Params
	return append(args, group, op, string(p.Kind), permits(q.N), permits(cmp.Or(q.Min, q.N)),
		min(wait, 4*ratelimit.MaxTicks-1), p.Cost, p.Scale, p.Free, p.Cap, p.MaxPermits)
}

func fromMicros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

func readAnswer(v []int64) ratelimit.Decision {
	return ratelimit.Decision{
		Allowed: v[0] == verdictAllowed, Never: v[0] == verdictNever,
		Granted: v[1], Wait: fromMicros(v[2]), Remaining: v[3],
		RetryAfter: fromMicros(v[4]), ResetAfter: fromMicros(v[5]),
	}
}
