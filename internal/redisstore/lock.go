package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/workers"
)

// unlockScript deletes the lock if ARGV 1 still holds it.
var unlockScript = redis.NewScript(
	`local has = redis.call('GET', KEYS[1])
if has and string.match(has, '^%S+') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`,
)

// lockScript acquires or renews a lock. KEYS 1 the lock; ARGV 1 the holder, 2 its life in ms.
// Returns 1, or 0 where another holder has it. The value is the holder and the end of the lock in
// Unix ms, because no key expires in the Redis of standalone.
//
// A lock that expires in more than its life was acquired before Redis' clock was set back. The
// script shortens it to one life, so that a dead holder's lock ends in that time. A living holder
// renews it before.
var lockScript = redis.NewScript(`local has = redis.call('GET', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holder, ends = string.match(has or '', '^(%S+) (%d+)$')
local over = ends and tonumber(ends) <= now
if has and holder ~= ARGV[1] and not over then
  if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return 0
end
redis.call('SET', KEYS[1], string.format('%s %d', ARGV[1], now + ARGV[2]), 'PX', ARGV[2])
return 1`)

// acquire takes or renews the lock for a holder. It reports false where another holder has it.
func (s *Store) acquire(ctx context.Context, key, holder string, life time.Duration) (bool, error) {
	mine, err := lockScript.Run(ctx, s.client, []string{key}, holder, life.Milliseconds()).Bool()
	if err != nil {
		return false, fmt.Errorf("take the lock of a rebuild in redis: %w", err)
	}
	return mine, nil
}

// LockRebuild acquires the lock of a goods' rebuild and renews it until unlock is called; ok is
// false where another holder has it. The lock of a dead holder expires after life. The lock saves
// duplicate work; the fencing token guarantees correctness.
func (s *Store) LockRebuild(
	ctx context.Context, goodsID int64, life time.Duration,
) (unlock func(), ok bool, err error) {
	key, holder := keysOf(goodsID).rebuildLock(), uuid.NewString()
	if ok, err = s.acquire(ctx, key, holder, life); !ok {
		return nil, false, err
	}
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() {
		_ = workers.Every(held, life/4, func(ctx context.Context) {
			_, _ = s.acquire(ctx, key, holder, life) // a lost lock costs only duplicate work
		})
	})
	return func() {
		release()
		keeper.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = unlockScript.Run(ctx, s.client, []string{key}, holder).Err()
		// if this fails, the lock expires
	}, true, nil
}
