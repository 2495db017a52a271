package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// unlock removes a lock only where it is still the holder's.
var unlock = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// takeTurn has a turn taken, or kept by who has it: KEYS 1 the turn; ARGV 1 who asks, 2 ms. Returns 1, or 0 where another has it.
var takeTurn = redis.NewScript(`local has = redis.call('GET', KEYS[1])
if has and has ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)

// TakeTurn takes the turn of carrying units between the buckets of a sale, or keeps it, for a while; false where another has it.
func (s *Store) TakeTurn(ctx context.Context, goodsID int64, holder string, life time.Duration) (bool, error) {
	mine, err := takeTurn.Run(ctx, s.client, []string{keysOf(goodsID).turn()}, holder, life.Milliseconds()).Bool()
	if err != nil {
		return false, fmt.Errorf("take a turn in redis: %w", err)
	}
	return mine, nil
}

// LockRebuild takes the lock of a goods' rebuild for a while (SET NX PX); false where another holds it. It keeps two
// rebuilders from doing the same work; that they do no harm is the fencing token's matter, not the lock's.
func (s *Store) LockRebuild(ctx context.Context, goodsID int64, life time.Duration) (func(), bool, error) {
	key, holder := keysOf(goodsID).rebuildLock(), uuid.NewString()
	err := s.client.SetArgs(ctx, key, holder, redis.SetArgs{Mode: "NX", TTL: life}).Err()
	if errors.Is(err, redis.Nil) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("lock a rebuild in redis: %w", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = unlock.Run(ctx, s.client, []string{key}, holder).Err() // where this fails the lock ends by itself
	}, true, nil
}
