package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A rebuild that takes longer than its lock's life keeps the lock, also where Redis has lost it meanwhile; one that is over
// gives it up, and that of a rebuilder that died ends by itself.
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
	require.False(t, ok, "its holder is at work")
	key := keysOf(goods).rebuildLock()
	require.NoError(t, s.client.PExpire(t.Context(), key, life/2).Err())
	require.Eventually(
		t, func() bool { return s.client.PTTL(t.Context(), key).Val() > life/2 }, time.Minute,
		time.Millisecond, "renewed before it ends",
	)
	require.NoError(t, s.client.Del(t.Context(), key).Err())
	require.Eventually(
		t, func() bool { return s.client.Exists(t.Context(), key).Val() == 1 }, time.Minute,
		time.Millisecond, "taken again where it was lost",
	)
	unlock()
	unlock, ok = lock(time.Hour)
	require.True(t, ok, "given up")
	unlock()

	require.NoError(t, s.client.Set(t.Context(), key, "one who died", 200*time.Millisecond).Err())
	require.Eventually(t, func() bool {
		unlock, ok := lock(life)
		if ok {
			unlock()
		}
		return ok
	}, time.Minute, 10*time.Millisecond)
}
