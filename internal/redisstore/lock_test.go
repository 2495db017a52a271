package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLockRebuild_IsRenewedWhileHeld checks that a long rebuild keeps its lock, even after Redis
// lost it. A finished rebuild releases the lock, and the lock of a dead rebuilder expires.
func TestLockRebuild_IsRenewedWhileHeld(t *testing.T) {
	const life = 4 * time.Second
	s := open(t, env.Redis(t).Addr(), "")
	lock := func(life time.Duration) (func(), bool) {
		unlock, ok, err := s.LockRebuild(t.Context(), goods, life)
		require.NoError(t, err)
		return unlock, ok
	}
	unlock, ok := lock(life)
	require.True(t, ok)
	_, ok = lock(life)
	require.False(t, ok, "the holder still runs")
	key := keysOf(goods).rebuildLock()
	require.NoError(t, s.client.PExpire(t.Context(), key, life/2).Err())
	require.Eventually(t, func() bool { return s.client.PTTL(t.Context(), key).Val() > life/2 },
		time.Minute, time.Millisecond, "the holder renews the lock before it expires")
	require.NoError(t, s.client.Del(t.Context(), key).Err())
	require.Eventually(t, func() bool { return s.client.Exists(t.Context(), key).Val() == 1 },
		time.Minute, time.Millisecond, "the holder takes a lost lock again")
	unlock()
	unlock, ok = lock(time.Hour)
	require.True(t, ok, "the finished rebuild released the lock")
	unlock()

	require.NoError(t, s.client.Set(t.Context(), key, "a dead holder", 200*time.Millisecond).Err())
	require.Eventually(t, func() bool {
		unlock, ok := lock(life)
		if ok {
			unlock()
		}
		return ok
	}, time.Minute, 10*time.Millisecond)
}

// TestLockRebuild_OfADeadHolderEndsAfterItsLife checks that a lock whose holder died ends although
// Redis' clock was set back by an hour, which leaves the key an hour more.
func TestLockRebuild_OfADeadHolderEndsAfterItsLife(t *testing.T) {
	const life = 50 * time.Millisecond
	s := open(t, env.Redis(t).Addr(), "")
	key := keysOf(goods + 1).rebuildLock()
	require.NoError(t, s.client.Set(t.Context(), key, "a dead holder", time.Hour+life).Err())
	require.Eventually(t, func() bool {
		unlock, ok, err := s.LockRebuild(t.Context(), goods+1, life)
		require.NoError(t, err)
		if ok {
			unlock()
		}
		return ok
	}, time.Minute, 10*time.Millisecond)
}
