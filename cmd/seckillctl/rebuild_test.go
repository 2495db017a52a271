package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
)

// TestRebuild_WaitsForReplicasToo checks that a rebuild by hand waits for purchases as long as one
// of the order consumers: an API may wait for Redis' replicas before it publishes.
func TestRebuild_WaitsForReplicasToo(t *testing.T) {
	c := rebuildCmd{PublishTimeout: time.Second}
	c.WaitTimeout = 500 * time.Millisecond
	require.Equal(t, time.Second, c.rebuilder(&connect.Servers{}).PublishTimeout)
	c.WaitReplicas = 1
	require.Equal(t, 1500*time.Millisecond, c.rebuilder(&connect.Servers{}).PublishTimeout)
}
