package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// errTooFewReplicas says that what a script did may be lost with the master.
var errTooFewReplicas = errors.New("too few replicas have it yet")

// maxRedirects is how often a group follows a cluster's word that its goods is elsewhere, or asks again in a moment.
const (
	maxRedirects  = 4
	redirectPause = 10 * time.Millisecond
)

// reserveOn runs the reserve script and, where replicas count, waits for them: on the same connection, since WAIT is about
// what that connection has written, and in the same round trip. unsure tells why the replicas may not have it.
func (s *Store) reserveReplicated(
	ctx context.Context,
	k keys,
	keys []string,
	args []any,
) (fields []any, unsure, err error) {
	if s.opts.WaitReplicas == 0 {
		fields, err = s.reserve.Run(ctx, s.client, keys, args...).Slice()
		return fields, nil, err
	}
	node, err := s.masterOf(ctx, k)
	if err != nil {
		return nil, nil, err
	}
	asking := false
	for n := range maxRedirects {
		fields, unsure, err = s.reserveAndWait(ctx, node, asking, k, keys, args)
		to, asks, again, lookErr := s.redirected(ctx, node, err)
		if lookErr != nil {
			return nil, nil, fmt.Errorf("%w (%w)", err, lookErr)
		}
		if !again {
			return fields, unsure, err
		}
		if to == node {
			pause(ctx, redirectPause<<n)
		}
		node, asking = to, asks
	}
	return fields, unsure, err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// reserveAndWait writes one key more between the two. A group whose paths have all been used before writes nothing, and
// what it is answered must be on the replicas all the same: replicas follow in order, so who has this key has the rest.
// The script goes whole, by EVAL: a pipeline that found it forgotten would have waited before it could send it again.
func (s *Store) reserveAndWait(
	ctx context.Context,
	node redis.UniversalClient,
	asking bool,
	k keys,
	keys []string,
	args []any,
) (fields []any, unsure, err error) {
	pipe := node.Pipeline()
	ask := func() {
		if asking { // for one command at a time, at a server that does not own the slot yet
			pipe.Do(ctx, "ASKING")
		}
	}
	ask()
	script := s.reserve.Eval(ctx, pipe, keys, args...)
	ask()
	written := pipe.Set(ctx, k.replicationMarker(), 1, UsedPathLife)
	waited := pipe.Do(ctx, "WAIT", s.opts.WaitReplicas, s.opts.WaitTimeout.Milliseconds())
	_, _ = pipe.Exec(ctx) // each command has its own error
	fields, err = script.Slice()
	n, waitErr := waited.Int()
	unsure = errors.Join(written.Err(), waitErr)
	if unsure == nil && n < s.opts.WaitReplicas {
		unsure = fmt.Errorf("%w: %d of %d", errTooFewReplicas, n, s.opts.WaitReplicas)
	}
	return fields, unsure, err
}
