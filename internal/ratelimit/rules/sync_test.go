package rules_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/workers"
	"flashsale.dev/seckill/scripts/lua"
)

const (
	nodesKey     = "ratelimit:{rules}:nodes"
	versionKey   = "ratelimit:{rules}:version"
	overridesKey = "ratelimit:{rules}:overrides"
)

const overriddenRule = `{rules: [{name: r, by: [goods], algorithm: token_bucket,
  permitsPerSecond: 100, burst: 100}]}`

func clientOf(t *testing.T) *goredis.Client {
	client := goredis.NewClient(&goredis.Options{Addr: servers.Redis(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// node is the part of a program that reads and changes limits.
type node struct {
	book  *rules.Rulebook
	sync  *rules.Sync
	admin *rules.Admin
}

// newNode starts a node that does not sync by itself. own and audit may be nil.
func newNode(
	t *testing.T, client *goredis.Client, own rules.OwnLimit, audit rules.Audit,
) node {
	b := book(t, overriddenRule)
	s := rules.NewSync(client, b)
	return node{b, s, rules.NewAdmin(b, s, redislimit.New(client, nil), own, audit)}
}

// burst syncs, and returns the burst of a key on this node.
func (n node) burst(t *testing.T, key string) int64 {
	require.NoError(t, n.sync.RunOnce(t.Context()))
	return n.book.Params(ruleNamed(t, n.book, "r"), key, nil).Limit().Burst
}

// set is an operator's change of one field of a key.
func (n node) set(t *testing.T, key string, burst int64) {
	must.Get(n.admin.Set(t.Context(), "r", key, rules.Change{Burst: &burst}))(t)
}

// copyOf returns a function that replaces the limits in Redis by those of now, as a failover to a
// replica that lags does.
func copyOf(t *testing.T, client *goredis.Client) (failOver func()) {
	version := client.Get(t.Context(), versionKey).Val()
	fields := client.HGetAll(t.Context(), overridesKey).Val()
	return func() {
		require.NoError(t, client.Del(t.Context(), versionKey, overridesKey).Err())
		if version != "" {
			require.NoError(t, client.Set(t.Context(), versionKey, version, 0).Err())
			require.NoError(t, client.HSet(t.Context(), overridesKey, fields).Err())
		}
	}
}

func versionIn(t *testing.T, client *goredis.Client) int64 {
	return must.Get(client.Get(t.Context(), versionKey).Int64())(t)
}

// TestSync_LaggingRedisGetsNewerLimitsBack checks a failover to a replica that lags. It loosens no
// limit that an operator has tightened, and brings none back that an operator has removed.
func TestSync_LaggingRedisGetsNewerLimitsBack(t *testing.T) {
	client := clientOf(t)
	a, b := newNode(t, client, nil, nil), newNode(t, client, nil, nil)
	a.set(t, "1", 50)
	a.set(t, "2", 60)
	a.set(t, "3", 70)
	failOver := copyOf(t, client)
	a.set(t, "1", 5)
	require.NoError(t, a.admin.Delete(t.Context(), "r", "2"))
	require.EqualValues(t, 5, b.burst(t, "1"))
	newest := versionIn(t, client)

	failOver()
	fresh := newNode(t, client, nil, nil)
	require.EqualValues(t, 50, fresh.burst(t, "1"), "this node has never read the newer limits")
	require.EqualValues(t, 5, a.burst(t, "1"))
	require.Equal(t, newest, versionIn(t, client))
	for _, n := range []node{a, b, fresh} {
		require.EqualValues(t, 5, n.burst(t, "1"))
		require.EqualValues(t, 100, n.burst(t, "2"), "the rule's")
		require.EqualValues(t, 70, n.burst(t, "3"))
	}

	failOver()
	set := must.Get(b.admin.Set(t.Context(), "r", "1", rules.Change{PermitsPerSecond: new(7.0)}))(t)
	require.EqualValues(t, 5, set.Burst, "a change begins with the newest limits")
}

// TestSync_NewestKnownVersionRemains restores limits from a node that has missed the last change.
// A node that knows the change restores it.
func TestSync_NewestKnownVersionRemains(t *testing.T) {
	client := clientOf(t)
	a, asleep := newNode(t, client, nil, nil), newNode(t, client, nil, nil)
	a.set(t, "1", 50)
	require.EqualValues(t, 50, asleep.burst(t, "1"))
	a.set(t, "1", 5)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	require.EqualValues(t, 50, asleep.burst(t, "1"))
	require.EqualValues(t, 5, a.burst(t, "1"))
	newest := versionIn(t, client)
	restore := goredis.NewScript(lua.Source("ratelimit_restore"))
	restored := must.Get(restore.Run(t.Context(), client, []string{versionKey, overridesKey},
		newest-1).Bool())(t)
	require.False(t, restored, "a node that saw the empty Redis before the newest were written")
	require.Equal(t, newest, versionIn(t, client))
	require.EqualValues(t, 5, asleep.burst(t, "1"))
}

// TestSync_ChangeAfterALossKeepsOtherLimits changes limits on nodes that have started after Redis
// was emptied, before the nodes that know the limits have written them back.
func TestSync_ChangeAfterALossKeepsOtherLimits(t *testing.T) {
	client := clientOf(t)
	a := newNode(t, client, nil, nil)
	a.set(t, "1", 50)
	a.set(t, rules.AnyKey, 40)
	for name, change := range map[string]func(fresh node){
		"set of one field": func(fresh node) {
			change := rules.Change{PermitsPerSecond: new(7.0)}
			set, err := fresh.admin.Set(t.Context(), "r", "3", change)
			assert.NoError(t, err)
			assert.EqualValues(t, 40, set.Burst, "it begins with the limit of all keys")
		},
		"set":    func(fresh node) { fresh.set(t, "2", 60) },
		"delete": func(fresh node) { assert.NoError(t, fresh.admin.Delete(t.Context(), "r", "2")) },
	} {
		require.NoError(t, client.FlushAll(t.Context()).Err())
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			workers.Sleep(ctx, 50*time.Millisecond) // the change begins first
			_ = a.sync.Run(ctx, func(error) {})
		})
		fresh := newNode(t, client, nil, nil)
		change(fresh)
		cancel()
		running.Wait()
		require.EqualValues(t, 50, a.burst(t, "1"), name)
		require.EqualValues(t, 50, fresh.burst(t, "1"), name)
	}
}

// TestSync_VersionNeverRepeats sets a limit on a replica that lags, by a node that does not know
// the lost change. A node that slept meanwhile still knows it, and reads the new limit.
func TestSync_VersionNeverRepeats(t *testing.T) {
	client := clientOf(t)
	a, asleep := newNode(t, client, nil, nil), newNode(t, client, nil, nil)
	a.set(t, "1", 50)
	failOver := copyOf(t, client)
	a.set(t, "1", 5)
	require.EqualValues(t, 5, asleep.burst(t, "1"))

	failOver()
	newNode(t, client, nil, nil).set(t, "1", 9)
	require.EqualValues(t, 9, asleep.burst(t, "1"))
}

// TestSync_VersionIsTimeAndNeverGoesBack begins with the counter of an older release, and with a
// version of a clock that was ahead. After each change an older release adds 1.
func TestSync_VersionIsTimeAndNeverGoesBack(t *testing.T) {
	const ahead = int64(1) << 52
	client := clientOf(t)
	n := newNode(t, client, nil, nil)
	older := func(burst int) {
		text := `{"algorithm":"token_bucket","permitsPerSecond":1,"burst":` +
			strconv.Itoa(burst) + `}`
		require.NoError(t, client.HSet(t.Context(), overridesKey, "r 1", text).Err())
		require.NoError(t, client.Incr(t.Context(), versionKey).Err())
	}
	require.NoError(t, client.Set(t.Context(), versionKey, 17, 0).Err())
	older(70)
	require.EqualValues(t, 70, n.burst(t, "1"))
	began := must.Get(client.Time(t.Context()).Result())(t)
	n.set(t, "1", 50)
	require.GreaterOrEqual(t, versionIn(t, client), began.UnixMicro())
	require.Less(t, versionIn(t, client), began.Add(time.Hour).UnixMicro())
	older(71)
	require.EqualValues(t, 71, n.burst(t, "1"))

	require.NoError(t, client.Set(t.Context(), versionKey, ahead, 0).Err())
	n.set(t, "1", 51)
	require.Equal(t, ahead+1, versionIn(t, client))
	older(72)
	require.EqualValues(t, 72, n.burst(t, "1"))
}

// TestSync_InvalidOverrideKeepsTheLastValidLimit writes overrides past the API, as another release
// or a person with redis-cli does. A key without a valid one before has the limit of the rule.
func TestSync_InvalidOverrideKeepsTheLastValidLimit(t *testing.T) {
	const valid = `{"algorithm":"token_bucket","permitsPerSecond":1,"burst":7}`
	client := clientOf(t)
	b := book(t, overriddenRule)
	sync, r := rules.NewSync(client, b), ruleNamed(t, b, "r")
	write := func(key, text string) {
		ctx := t.Context()
		require.NoError(t, client.HSet(ctx, overridesKey, "r "+key, text).Err())
		require.NoError(t, client.Incr(ctx, versionKey).Err())
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
		`{"algorithm":"token_bucket","permitsPerSecond":1,"burst":"many"}`,
		`not JSON`,
	} {
		write("1", text)
		require.Equal(t, last, b.Params(r, "1", nil), text)
		write("2", text)
		require.Equal(t, rule, b.Params(r, "2", nil), text)
	}
	write("2", valid)
	require.Equal(t, last, b.Params(r, "2", nil))
	require.NoError(t, client.HDel(t.Context(), overridesKey, "r 1").Err())
	write("2", valid)
	require.Equal(t, rule, b.Params(r, "1", nil), "a removed override leaves nothing")
}

// TestSync_OverridesOfANodesRule checks that a rule of scope node takes every algorithm.
func TestSync_OverridesOfANodesRule(t *testing.T) {
	client := clientOf(t)
	b := book(t, `{rules: [{name: n, by: [ip], scope: node, algorithm: sub_windows, limit: 9}]}`)
	sync, n := rules.NewSync(client, b), ruleNamed(t, b, "n")
	require.Equal(t, 1, sync.Nodes(), "before the first sync")
	for _, text := range []string{
		`{"algorithm":"sub_windows","limit":5,"intervalSeconds":1,"parts":5}`,
		`{"algorithm":"sub_windows","limit":-1,"intervalSeconds":1,"parts":5}`,
	} {
		require.NoError(t, client.HSet(t.Context(), overridesKey, "n 1", text).Err())
		require.NoError(t, client.Incr(t.Context(), versionKey).Err())
		require.NoError(t, sync.RunOnce(t.Context()))
		require.EqualValues(t, 5, b.Params(n, "1", nil).Limit().Limit, text)
	}
}

// TestSync_EndedNodesDoNotCount sets Redis' clock back by an hour after one node has
// ended, and by three seconds before another one syncs again. A third one was killed.
func TestSync_EndedNodesDoNotCount(t *testing.T) {
	client := clientOf(t)
	n := newNode(t, client, nil, nil)
	now := must.Get(client.Time(t.Context()).Result())(t).Unix()
	require.NoError(t, client.ZAdd(t.Context(), nodesKey,
		goredis.Z{Score: float64(now - 6), Member: "killed"},
		goredis.Z{Score: float64(now + 3600), Member: "ended"},
		goredis.Z{Score: float64(now + 3), Member: "runs"}).Err())
	require.NoError(t, n.sync.RunOnce(t.Context()))
	require.Equal(t, 2, n.sync.Nodes())
	require.Positive(t, client.TTL(t.Context(), nodesKey).Val(), "nothing is left of the last node")
}

// TestSync_ReportsFailures checks that a failure to read the limits does not end Run.
func TestSync_ReportsFailures(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	var reported []error
	report := func(err error) {
		if reported = append(reported, err); len(reported) == 2 {
			cancel()
		}
	}
	require.NoError(t, rules.NewSync(client, book(t, overriddenRule)).Run(ctx, report))
	for _, err := range reported[:2] {
		require.ErrorContains(t, err, "read changed limits")
	}
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

// TestSync_CallersWaitForFewOthers has many operators at once, and a Redis that hangs.
func TestSync_CallersWaitForFewOthers(t *testing.T) {
	server := servers.Redis(t)
	client := goredis.NewClient(&goredis.Options{
		Addr: server.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1,
	})
	t.Cleanup(func() { _ = client.Close() })
	n := newNode(t, client, nil, nil)
	require.NoError(t, server.Pause())
	var busy atomic.Int64
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := n.admin.Get(t.Context(), "r", "1")
			assert.ErrorContains(t, err, "read changed limits")
			if strings.Contains(err.Error(), "earlier calls") {
				busy.Add(1)
			}
		})
	}
	all.Wait()
	require.Positive(t, busy.Load(), "each caller waited for Redis in turn")
}
