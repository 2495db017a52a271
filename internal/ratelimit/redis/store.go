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

// Client is what a Redis limiter needs of a go-redis client: *redis.Client,
// *redis.ClusterClient and redis.UniversalClient are such.
type Client interface {
	redis.Scripter
	Del(ctx context.Context, keys ...string) *redis.IntCmd
}

// Store decides by one atomic script on Redis' own clock. It is safe for many
// goroutines and keeps no state: deadlines are the context's and the client's.
type Store struct {
	client Client
	script *redis.Script
	now    func() time.Time
}

// New makes a limiter on any go-redis client, a cluster's too.
func New(client Client) *Store {
	return &Store{client: client, script: redis.NewScript(lua.Source("ratelimit_decide"))}
}

// WithClock gives a copy that passes now into the script instead of letting it
// read Redis' TIME. For tests: production nodes do not agree on the time.
func (r *Store) WithClock(now func() time.Time) *Store {
	return &Store{client: r.client, script: r.script, now: now}
}

// The script's ops and verdicts; its header says the same.
const (
	opTake   = "t"
	opPeek   = "p"
	opRefund = "r"

	verdictDenied  = 0
	verdictAllowed = 1
	verdictNever   = 2

	askStride    = 11
	answerStride = 6
)

// Take decides the asks together: all are charged, or none is. Of several the
// Decision is the strictest: the longest waits, the fewest permits remaining.
func (r *Store) Take(ctx context.Context, asks ...ratelimit.Ask) (ratelimit.Decision, error) {
	decisions, err := r.TakeEach(ctx, asks)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return decisions[0], nil
}

// TakeEach decides many groups in one call, each on its own and in order. In a
// cluster all of their keys must share a hash slot.
func (r *Store) TakeEach(ctx context.Context, groups ...[]ratelimit.Ask) ([]ratelimit.Decision, error) {
	return r.run(ctx, opTake, nil, groups)
}

// Peek answers as Take would and charges nothing.
func (r *Store) Peek(ctx context.Context, asks ...ratelimit.Ask) (ratelimit.Decision, error) {
	decisions, err := r.run(ctx, opPeek, nil, [][]ratelimit.Ask{asks})
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return decisions[0], nil
}

// Refund gives back N permits of each ask that were booked at the Decision's
// At. What has drained, or belongs to a window that is over, is not credited.
func (r *Store) Refund(ctx context.Context, booked time.Time, asks ...ratelimit.Ask) error {
	_, err := r.run(ctx, opRefund, &booked, [][]ratelimit.Ask{asks})
	return err
}

// Forget is Store's. Each key is deleted alone: in a cluster they may lie apart.
func (r *Store) Forget(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := r.client.Del(ctx, key).Err(); err != nil {
			return fmt.Errorf("ratelimit: forget: %w", err)
		}
	}
	return nil
}

func (r *Store) run(ctx context.Context, op string, booked *time.Time, groups [][]ratelimit.Ask) ([]ratelimit.Decision, error) {
	var keys []string
	args := []any{r.clock()}
	for g, group := range groups {
		if err := ratelimit.CheckGroup(group); err != nil {
			return nil, err
		}
		for _, a := range group {
			if !a.Terms.InRedis() {
				return nil, ratelimit.BadField("algorithm", "%s lives in process only", a.Terms.Limit().Algorithm)
			}
			keys = append(keys, a.Key)
			args = appendAsk(args, g, op, a, booked)
		}
	}
	reply, err := r.script.Run(ctx, r.client, keys, args...).Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("ratelimit: decide: %w", err)
	}
	if len(reply) != 1+answerStride*len(keys) {
		return nil, fmt.Errorf("ratelimit: decide: %d numbers for %d asks", len(reply), len(keys))
	}
	return readAnswers(reply, groups), nil
}

func (r *Store) clock() string {
	if r.now == nil {
		return ""
	}
	return strconv.FormatInt(r.now().UnixMicro(), 10)
}

func appendAsk(args []any, group int, op string, a ratelimit.Ask, booked *time.Time) []any {
	wait := max(0, a.MaxWait.Microseconds())
	if booked != nil {
		wait = booked.UnixMicro()
	}
	least := a.Least
	if least == 0 {
		least = a.N
	}
	// More than can ever be asked is never; keep it inside Lua's exact range.
	n := min(a.N, ratelimit.MaxTicks)
	t := a.Terms
	return append(args, group, op, string(t.Kind), n, min(least, n), min(wait, 4*ratelimit.MaxTicks-1), t.Cost, t.Scale, t.Free, t.Cap, t.Most)
}

func readAnswers(reply []int64, groups [][]ratelimit.Ask) []ratelimit.Decision {
	at := time.UnixMicro(reply[0]).UTC()
	reply = reply[1:]
	decisions := make([]ratelimit.Decision, 0, len(groups))
	for _, group := range groups {
		d := readAnswer(reply)
		for i := 1; i < len(group); i++ {
			d = ratelimit.Strictest(d, readAnswer(reply[i*answerStride:]))
		}
		reply = reply[len(group)*answerStride:]
		d.At = at
		decisions = append(decisions, d)
	}
	return decisions
}

func fromMicros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

func readAnswer(v []int64) ratelimit.Decision {
	return ratelimit.Decision{
		Allowed: v[0] == verdictAllowed, Never: v[0] == verdictNever, Granted: v[1], Wait: fromMicros(v[2]),
		Remaining: v[3], RetryAfter: fromMicros(v[4]), ResetAfter: fromMicros(v[5]),
	}
}
