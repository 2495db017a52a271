package httpapi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// TestStreams_AreBounded checks the stream limits of a node and of a user. A stream that ends frees
// its place.
func TestStreams_AreBounded(t *testing.T) {
	var s streams
	for range maxStreamsOfUser {
		require.NoError(t, s.acquire(1))
	}
	require.Equal(t, seckill.RateLimited, seckill.ReasonOf(s.acquire(1)))
	require.NoError(t, s.acquire(2), "another user has a limit of its own")
	s.release(1)
	require.NoError(t, s.acquire(1))
	for user := int64(3); s.all < maxStreamsOfNode; user++ {
		require.NoError(t, s.acquire(user))
	}
	require.Equal(t, seckill.Unavailable, seckill.ReasonOf(s.acquire(1)),
		"a full node refuses every user")
	require.Equal(t, seckill.Unavailable, seckill.ReasonOf(s.acquire(1e6)))
	s.release(3)
	require.NoError(t, s.acquire(1e6))
	for user := range s.byUser {
		for s.byUser[user] > 0 {
			s.release(user)
		}
	}
	require.Zero(t, s.all)
	require.Empty(t, s.byUser, "users without a stream keep no entry")
}
