package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// unlockScript removes a lock only where it is still the holder's.
var unlockScript = redis.NewScript(
	`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
)

// lockScript has a turn taken, or kept by who has it: KEYS 1 the turn; ARGV 1 who asks, 2 ms. Returns 1, or 0 where another has it.
var lockScript = redis.NewScript(`local has = redis.call('GET', KEYS[1])
if has and has ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)

func (s *Store) acquire(ctx context.Context, key, holder string, life time.Duration) (bool, error) {
	mine, err := lockScript.Run(ctx, s.client, []string{key}, holder, life.Milliseconds()).Bool()
	if err != nil {
		return false, fmt.Errorf("take a turn in redis: %w", err)
	}
	return mine, nil
}

// LockRebuild takes the lock of a goods' rebuild and keeps it until unlock is called; false where another has it. A holder
// that is heard of no more keeps it for life. It keeps two rebuilders from doing the same work; that they do no harm is the
// fencing token's matter, not the lock's.
func (s *Store) LockRebuild(
	ctx context.Context,
	goodsID int64,
	life time.Duration,
) (unlock func(), ok bool, err error) {
	key, holder := keysOf(goodsID).rebuildLock(), uuid.NewString()
	if ok, err = s.acquire(ctx, key, holder, life); !ok {
		return nil, false, err
	}
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() { s.renew(held, key, holder, life) })
	return func() {
		release()
		keeper.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = unlockScript.Run(ctx, s.client, []string{key}, holder).
			Err()
		// where this fails the lock ends by itself
	}, true, nil
}

// keep renews a lock until ctx ends. A Redis that does not answer, or has lost it, is asked again; nothing hangs on it.
func (s *Store) renew(ctx context.Context, key, holder string, life time.Duration) {
	for tick := time.NewTicker(life / 4); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			_, _ = s.acquire(ctx, key, holder, life)
		}
	}
}
