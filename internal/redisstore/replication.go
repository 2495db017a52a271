package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// errTooFewReplicas means that a reservation may be lost together with the master.
var errTooFewReplicas = errors.New("too few replicas have it yet")

// markerLife bounds the life of the marker key.
const markerLife = 24 * time.Hour

// maxRedirects bounds the redirections of one batch. redirectPause is the first pause before a
// repeated attempt.
const (
	maxRedirects  = 4
	redirectPause = 10 * time.Millisecond
)

// reserveReplicated runs the reserve script. With WaitReplicas it waits for replicas in the same
// round trip. WAIT covers the writes of its own connection, so both use one. notReplicated is the
// reason for which replicas may lack the batch.
func (s *Store) reserveReplicated(
	ctx context.Context, k keys, keys []string, args []any,
) (fields []any, notReplicated, err error) {
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
		fields, notReplicated, err = s.reserveAndWait(ctx, node, asking, k, keys, args)
		to, asks, again, redirectErr := s.redirected(ctx, node, err)
		if redirectErr != nil {
			return nil, nil, fmt.Errorf("%w (%w)", err, redirectErr)
		}
		if !again {
			return fields, notReplicated, err
		}
		if to == node {
			pause(ctx, redirectPause<<n)
		}
		node, asking = to, asks
	}
	return fields, notReplicated, err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// reserveAndWait writes a marker key between the script and WAIT. A batch of repeated paths writes
// nothing, but earlier writes that it reports must be replicated too. Replicas apply writes in
// order, so the marker covers those. EVAL sends the whole script, because a pipeline cannot repeat
// EVALSHA before its WAIT.
func (s *Store) reserveAndWait(
	ctx context.Context, node redis.UniversalClient, asking bool, k keys, keys []string, args []any,
) (fields []any, notReplicated, err error) {
	pipe := node.Pipeline()
	ask := func() {
		if asking { // for one command at a time, at a server that does not own the slot yet
			pipe.Do(ctx, "ASKING")
		}
	}
	ask()
	script := s.reserve.Eval(ctx, pipe, keys, args...)
	ask()
	written := pipe.Set(ctx, k.replicationMarker(), 1, markerLife)
	waited := pipe.Do(ctx, "WAIT", s.opts.WaitReplicas, s.opts.WaitTimeout.Milliseconds())
	_, _ = pipe.Exec(ctx) // each command has its own error
	fields, err = script.Slice()
	n, waitErr := waited.Int()
	notReplicated = errors.Join(written.Err(), waitErr)
	if notReplicated == nil && n < s.opts.WaitReplicas {
		notReplicated = fmt.Errorf("%w: %d of %d", errTooFewReplicas, n, s.opts.WaitReplicas)
	}
	return fields, notReplicated, err
}
