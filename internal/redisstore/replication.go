package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/workers"
)

// errTooFewReplicas means that what a script took may be lost together with the master.
var errTooFewReplicas = errors.New(
	"too few replicas have it yet: start them, or lower SECKILL_REDIS_WAIT_REPLICAS")

// markerLife bounds the life of the marker key.
const markerLife = 24 * time.Hour

const (
	maxRedirects  = 4                     // attempts of a batch that a cluster does not execute
	redirectPause = 10 * time.Millisecond // after the first; doubles each time
)

// runReplicated runs a script that takes units: reserve or adopt. With WaitReplicas it waits for
// replicas in the same round trip. notReplicated says why replicas may lack the batch.
//
// WAIT covers the writes of its own connection only. The script and WAIT therefore go to the master
// on one connection, past the cluster client, which would follow redirections. runReplicated reads
// the cluster's masters again and repeats the call instead. That also serves an ASK: a slot that is
// on its move may have arrived by a later attempt.
func (s *Store) runReplicated(
	ctx context.Context, script *redis.Script, k keys, keys []string, args []any,
) (fields []any, notReplicated, err error) {
	if s.opts.WaitReplicas == 0 {
		fields, err = script.Run(ctx, s.client, keys, args...).Slice()
		return fields, nil, err
	}
	for n := range maxRedirects {
		var node redis.UniversalClient
		if node, err = s.masterOf(ctx, k); err != nil {
			return nil, nil, err
		}
		fields, notReplicated, err = s.runAndWait(ctx, node, script, k, keys, args)
		if !notExecuted(err) || n == maxRedirects-1 {
			break
		}
		workers.Sleep(ctx, redirectPause<<n)
		if readErr := s.readMasters(ctx); readErr != nil {
			return nil, nil, errors.Join(err, readErr)
		}
	}
	return fields, notReplicated, err
}

// runAndWait runs a script and WAIT in one pipeline. Between them it writes a marker key: a batch
// of repeated numbers writes nothing itself, but the earlier writes that it reports must be
// replicated too. Replicas apply writes in order, so those that have the marker have them. EVAL
// sends the whole script, because a pipeline cannot load it and repeat EVALSHA before its WAIT.
func (s *Store) runAndWait(
	ctx context.Context, node redis.UniversalClient, script *redis.Script, k keys, keys []string,
	args []any,
) (fields []any, notReplicated, err error) {
	pipe := node.Pipeline()
	answer := script.Eval(ctx, pipe, keys, args...)
	written := pipe.Set(ctx, k.replicationMarker(), 1, markerLife)
	waited := pipe.Do(ctx, "WAIT", s.opts.WaitReplicas, s.opts.WaitTimeout.Milliseconds())
	_, _ = pipe.Exec(ctx) // each command has its own error
	fields, err = answer.Slice()
	n, waitErr := waited.Int()
	notReplicated = errors.Join(written.Err(), waitErr)
	if notReplicated == nil && n < s.opts.WaitReplicas {
		notReplicated = fmt.Errorf("%w: %d of %d", errTooFewReplicas, n, s.opts.WaitReplicas)
	}
	return fields, notReplicated, err
}
