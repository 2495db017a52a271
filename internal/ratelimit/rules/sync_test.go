package rules_test

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/servers"
)

const overriddenRule = `{rules: [{name: r, by: [goods], algorithm: token_bucket,
  permitsPerSecond: 100, burst: 100}]}`

// TestSync_InvalidOverrideKeepsTheLastValidLimit writes overrides past the API, as another release
// or a person with redis-cli does. A key without a valid one before has the limit of the rule.
func TestSync_InvalidOverrideKeepsTheLastValidLimit(t *testing.T) {
	const valid = `{"algorithm":"token_bucket","permitsPerSecond":1,"burst":7}`
	client := goredis.NewClient(&goredis.Options{Addr: servers.Redis(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	b := book(t, overriddenRule)
	sync, r := rules.NewSync(client, b), ruleNamed(t, b, "r")
	write := func(key, text string) {
		ctx := t.Context()
		require.NoError(t, client.HSet(ctx, "ratelimit:{rules}:overrides", "r "+key, text).Err())
		require.NoError(t, client.Incr(ctx, "ratelimit:{rules}:version").Err())
		require.NoError(t, sync.RunOnce(ctx))
	}
	rule := b.Params(r, "1", nil)
	write("1", valid)
	last := b.Params(r, "1", nil)
	require.NotEqual(t, rule, last)
	for _, text := range []string{
		`{"algorithm":"magic","permitsPerSecond":1}`,
		`{"algorithm":"token_bucket","permitsPerSecond":-1,"burst":7}`,
		`{"algorithm":"sub_windows","limit":5,"intervalSeconds":1,"parts":5}`,
		`{"permitsPerSecond":"many"}`,
		`not JSON`,
	} {
		write("1", text)
		require.Equal(t, last, b.Params(r, "1", nil), text)
		write("2", text)
		require.Equal(t, rule, b.Params(r, "2", nil), text)
	}
	write("2", valid)
	require.Equal(t, last, b.Params(r, "2", nil))
	require.NoError(t, client.HDel(t.Context(), "ratelimit:{rules}:overrides", "r 1").Err())
	write("2", valid)
	require.Equal(t, rule, b.Params(r, "1", nil), "a removed override leaves nothing")
}

// TestSync_EndsWellWithoutRedis checks that a program can stop while Redis is away: the node's
// entry there expires, so the failure is reported and is no error of the program.
func TestSync_EndsWellWithoutRedis(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var reported []error
	report := func(err error) { reported = append(reported, err) }
	require.NoError(t, rules.NewSync(client, book(t, overriddenRule)).Run(ctx, report))
	require.Len(t, reported, 1)
	require.ErrorContains(t, reported[0], "leave")
}
