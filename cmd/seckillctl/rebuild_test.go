package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
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

// TestNumbers_AreHeldToTheProgramsBounds covers settings with which no program starts: a rebuild
// would not wait for purchases under way, or use another queue, and a requeued order would expire.
func TestNumbers_AreHeldToTheProgramsBounds(t *testing.T) {
	for env, want := range map[string]string{
		"SECKILL_ORDER_SHARDS=-1":        `is "-1", must be 1 to 256 (--order-shards)`,
		"SECKILL_ORDER_SHARDS=0":         `is "0", must be 1 to 256 (--order-shards)`,
		"SECKILL_PUBLISH_TIMEOUT=0s":     `is "0s", must be 10ms to 10s (--publish-timeout)`,
		"SECKILL_PAYMENT_TIMEOUT=0s":     `is "0s", must be 1s to 8760h (--payment-timeout)`,
		"SECKILL_REDIS_WAIT_REPLICAS=17": `is "17", must be 0 to 16 (--redis-wait-replicas)`,
	} {
		t.Run(env, func(t *testing.T) {
			name, value, _ := strings.Cut(env, "=")
			t.Setenv(name, value)
			err := run(t.Context(), []string{
				"rebuild", "7", "--yes", "--mysql-dsn", "a:b@tcp(127.0.0.1:1)/c",
			}, nil, io.Discard, io.Discard)
			require.EqualError(t, err, name+": "+want)
			wrong, _ := errors.AsType[*exitError](err)
			require.Equal(t, codeUsage, wrong.code)
		})
	}
}

// TestMalformedSetting_IsAWrongCommandLine covers settings that no repetition of a command accepts.
// A script repeats what ends with 1.
func TestMalformedSetting_IsAWrongCommandLine(t *testing.T) {
	wrongType := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(wrongType, []byte("rules: [{name: a, limit: many}]"), 0o600))
	for _, args := range [][]string{
		{"ledger", "7", "--mysql-dsn", "somewhere"},
		{"migrate", "--mysql-dsn", "a:b@tcp(127.0.0.1:1)/"},
		{"rebuild", "7", "--mysql-dsn", "somewhere"},
		{"rebuild", "7", "--amqp-url", "http://127.0.0.1:1"},
		{"limiter", "get", "randomPath", "7", "--ratelimit-file", wrongType},
		{"limiter", "get", "randomPath", "7", "--ratelimit-file", wrongType + ".absent"},
	} {
		err := run(t.Context(), args, nil, io.Discard, io.Discard)
		wrong, _ := errors.AsType[*exitError](err)
		require.NotNil(t, wrong, "%s: %v", args, err)
		require.Equal(t, codeUsage, wrong.code, "%s: %v", args, err)
	}
}
