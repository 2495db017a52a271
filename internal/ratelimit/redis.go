package ratelimit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/scripts/lua"
)

// Ask is one question to one limiter in Redis.
type Ask struct {
	// Key of the limiter, whole, as it stands in Redis. Asks that are decided
	// together must share a hash tag in a cluster: that is the caller's job.
	Key string
	// Terms that hold for this ask. They are no part of the stored state: a
	// change of limits neither refills a bucket nor forgets a debt.
	Terms Terms
	// N permits, at least 1.
	N int64
	// Least permits that will do, for a lease; 0 means N. Only for an ask alone.
	Least int64
	// MaxWait that the caller can bear; what the limit allows if it is less.
	MaxWait time.Duration
}

// Client is what a Redis limiter needs of a go-redis client: *redis.Client,
// *redis.ClusterClient and redis.UniversalClient are such.
type Client interface {
	redis.Scripter
	Del(ctx context.Context, keys ...string) *redis.IntCmd
}

// Redis decides by one atomic script on Redis' own clock. It is safe for many
// goroutines and keeps no state: deadlines are the context's and the client's.
type Redis struct {
	client Client
	script *redis.Script
	now    func() time.Time
}

// NewRedis makes a limiter on any go-redis client, a cluster's too.
func NewRedis(client Client) *Redis {
	return &Redis{client: client, script: redis.NewScript(lua.Source("ratelimit_decide"))}
}

// WithClock gives a copy that passes now into the script instead of letting it
// read Redis' TIME. For tests: production nodes do not agree on the time.
func (r *Redis) WithClock(now func() time.Time) *Redis {
	return &Redis{client: r.client, script: r.script, now: now}
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
func (r *Redis) Take(ctx context.Context, asks ...Ask) (Decision, error) {
	decisions, err := r.TakeEach(ctx, asks)
	if err != nil {
		return Decision{}, err
	}
	return decisions[0], nil
}

// TakeEach decides many groups in one call, each on its own and in order. In a
// cluster all of their keys must share a hash slot.
func (r *Redis) TakeEach(ctx context.Context, groups ...[]Ask) ([]Decision, error) {
	return r.run(ctx, opTake, nil, groups)
}

// Peek answers as Take would and charges nothing.
func (r *Redis) Peek(ctx context.Context, asks ...Ask) (Decision, error) {
	decisions, err := r.run(ctx, opPeek, nil, [][]Ask{asks})
	if err != nil {
		return Decision{}, err
	}
	return decisions[0], nil
}

// Refund gives back N permits of each ask that were booked at the Decision's
// At. What has drained, or belongs to a window that is over, is not credited.
func (r *Redis) Refund(ctx context.Context, booked time.Time, asks ...Ask) error {
	_, err := r.run(ctx, opRefund, &booked, [][]Ask{asks})
	return err
}

// Forget is Store's. Each key is deleted alone: in a cluster they may lie apart.
func (r *Redis) Forget(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := r.client.Del(ctx, key).Err(); err != nil {
			return fmt.Errorf("ratelimit: forget: %w", err)
		}
	}
	return nil
}

func (r *Redis) run(ctx context.Context, op string, booked *time.Time, groups [][]Ask) ([]Decision, error) {
	var keys []string
	args := []any{r.clock()}
	for g, group := range groups {
		if err := checkGroup(group, true); err != nil {
			return nil, err
		}
		for _, a := range group {
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

func (r *Redis) clock() string {
	if r.now == nil {
		return ""
	}
	return strconv.FormatInt(r.now().UnixMicro(), 10)
}

func checkGroup(group []Ask, inRedis bool) error {
	if len(group) == 0 {
		return fmt.Errorf("ratelimit: no limiter to ask")
	}
	for _, a := range group {
		switch {
		case a.N < 1 || a.Least < 0 || a.Least > a.N:
			return ErrPermits
		case inRedis && !a.Terms.InRedis():
			return wrong("algorithm", "%s lives in process only", a.Terms.limit.Algorithm)
		case a.Least > 0 && a.Least < a.N && len(group) > 1:
			return fmt.Errorf("ratelimit: a lease is asked for alone")
		}
	}
	return nil
}

func appendAsk(args []any, group int, op string, a Ask, booked *time.Time) []any {
	wait := max(0, a.MaxWait.Microseconds())
	if booked != nil {
		wait = booked.UnixMicro()
	}
	least := a.Least
	if least == 0 {
		least = a.N
	}
	// More than can ever be asked is never; keep it inside Lua's exact range.
	n := min(a.N, maxTicks)
	t := a.Terms
	return append(args, group, op, string(t.kind), n, min(least, n), min(wait, 4*maxTicks-1), t.cost, t.scale, t.free, t.cap, t.most)
}

func readAnswers(reply []int64, groups [][]Ask) []Decision {
	at := unixMicros(reply[0])
	reply = reply[1:]
	decisions := make([]Decision, 0, len(groups))
	for _, group := range groups {
		d := readAnswer(reply)
		for i := 1; i < len(group); i++ {
			d = strictest(d, readAnswer(reply[i*answerStride:]))
		}
		reply = reply[len(group)*answerStride:]
		d.At = at
		decisions = append(decisions, d)
	}
	return decisions
}

func readAnswer(v []int64) Decision {
	return Decision{
		Allowed: v[0] == verdictAllowed, Never: v[0] == verdictNever, Granted: v[1], Wait: micros(v[2]),
		Remaining: v[3], RetryAfter: micros(v[4]), ResetAfter: micros(v[5]),
	}
}

// strictest joins the decisions of limits that must all agree.
func strictest(a, b Decision) Decision {
	d := Decision{
		Allowed: a.Allowed && b.Allowed, Never: a.Never || b.Never, Granted: min(a.Granted, b.Granted),
		Wait: max(a.Wait, b.Wait), Remaining: min(a.Remaining, b.Remaining),
		RetryAfter: max(a.RetryAfter, b.RetryAfter), ResetAfter: max(a.ResetAfter, b.ResetAfter),
	}
	if !d.Allowed {
		d.Granted, d.Wait = 0, 0
	}
	if d.Never {
		d.RetryAfter = 0
	}
	return d
}
