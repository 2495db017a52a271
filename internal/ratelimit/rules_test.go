package ratelimit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/servers"
)

func TestRulesSayWhereTheyAreWrong(t *testing.T) {
	for name, c := range map[string]struct{ yaml, says string }{
		"unknown field":     {"rules:\n  - name: a\n    colour: red\n", "[3:5] unknown field \"colour\""},
		"wrong type":        {"rules:\n  - name: a\n    limit: many\n", "[3:12]"},
		"unknown algorithm": {"rules:\n  - name: a\n    algorithm: magic\n", "line 3: rules[0] a: algorithm: unknown \"magic\""},
		"negative rate":     {"rules:\n  - name: ok\n  - name: b\n    permitsPerSecond: -1\n", "line 4: rules[1] b: permitsPerSecond"},
		"interval zero":     {"rules:\n  - name: a\n    intervalSeconds: 0\n", "line 3: rules[0] a: intervalSeconds"},
		"by nonsense":       {"rules:\n  - name: a\n    by: [moon]\n", "line 3: rules[0] a: by"},
		"by twice":          {"rules:\n  - name: a\n    by: [ip, ip]\n", "by"},
		"no name":           {"rules:\n  - limit: 5\n", "rules[0]: name"},
		"name twice":        {"rules:\n  - name: a\n  - name: a\n", "line 3: rules[1] a: name: \"a\" is there twice"},
		"doubled field":     {"rules:\n  - name: a\n    limit: 1\n    limit: 2\n", "[4:5]"},
		"on error":          {"rules:\n  - name: a\n    onError: panic\n", "line 3: rules[0] a: onError"},
		"on missing key":    {"rules:\n  - name: a\n    onMissingKey: cry\n", "line 3: rules[0] a: onMissingKey"},
		"leases":            {"rules:\n  - name: a\n    leases: 5000\n", "line 3: rules[0] a: leases"},
		"log in redis":      {"rules:\n  - name: a\n    algorithm: sliding_log\n", "algorithm: sliding_log lives in process only"},
		"waits differ":      {"rules:\n  - name: a\n    maxWait: 1s\n    maxWaitMillis: 5\n", "maxWait"},
		"fallback code":     {"rules:\n  - name: a\n    fallback: {code: 0}\n", "fallback.code"},
		"too many digits":   {"rules:\n  - name: a\n    permitsPerSecond: 0.1234567890123\n", "permitsPerSecond"},
		"not YAML":          {"rules: [", "["},
		"not rules":         {"rule: []", "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ratelimit.ParseRules([]byte(c.yaml))
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestRuleDefaults(t *testing.T) {
	b := book(t, `
rules:
  - name: bare
  - {name: rate, permitsPerSecond: 50}
  - {name: wait, permitsPerSecond: 50, maxWait: 250ms}
  - {name: window, algorithm: fixed_window, limit: 10, interval: 500ms}
`)
	limits := map[string]ratelimit.Limit{
		"bare":   {Algorithm: ratelimit.SlidingWindow, Limit: 100, IntervalSeconds: 60},
		"rate":   {Algorithm: ratelimit.Reserve, PermitsPerSecond: 50, MaxBurstSeconds: 1, MaxWaitMillis: 1000},
		"wait":   {Algorithm: ratelimit.Reserve, PermitsPerSecond: 50, MaxBurstSeconds: 1, MaxWaitMillis: 250},
		"window": {Algorithm: ratelimit.FixedWindow, Limit: 10, IntervalSeconds: 0.5},
	}
	for name, want := range limits {
		rule, ok := b.Rule(name)
		require.True(t, ok)
		require.Equal(t, want, rule.Fresh(), name)
		require.Equal(t, []string{"route"}, rule.By)
		require.Equal(t, ratelimit.OnErrorLocal, rule.OnError)
	}
}

func TestChangesAreLaidOverWhatHolds(t *testing.T) {
	rate, limit, interval, burst := 50.0, int64(5), 10.0, 2.0
	window, meter := ratelimit.FixedWindow, ratelimit.LeakyMeter
	for name, c := range map[string]struct {
		change ratelimit.Change
		quota  int64
		window time.Duration
	}{
		"nothing":                       {ratelimit.Change{}, 1000, time.Second},
		"a rate":                        {ratelimit.Change{PermitsPerSecond: &rate}, 50, time.Second},
		"a burst":                       {ratelimit.Change{MaxBurstSeconds: &burst}, 2000, 2 * time.Second},
		"a window of the rate it had":   {ratelimit.Change{Algorithm: &window}, 1000, time.Second},
		"a window of another rate":      {ratelimit.Change{Algorithm: &window, PermitsPerSecond: &rate}, 50, time.Second},
		"a rate said as limit and time": {ratelimit.Change{Limit: &limit, IntervalSeconds: &interval}, 1, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			quota, took := termsOf(t, c.change.Over(ratelimit.DefaultLimit())).Quota()
			require.Equal(t, c.quota, quota)
			require.Equal(t, c.window, took)
		})
	}
	require.ErrorContains(t, ratelimit.Change{Algorithm: &meter}.Over(ratelimit.DefaultLimit()).Validate(), "burst")
}

func TestLoadRules(t *testing.T) {
	b, err := ratelimit.LoadRules("")
	require.NoError(t, err)
	require.Equal(t, []string{"randomPath", "randomPathPerUser", "session"}, b.Names())
	rule, _ := b.Rule("randomPath")
	require.Equal(t, ratelimit.DefaultLimit(), rule.Fresh())

	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte("rules: [{name: randomPath, by: [goods], permitsPerSecond: 5}]"), 0o600))
	b, err = ratelimit.LoadRules(path)
	require.NoError(t, err)
	require.Equal(t, []string{"randomPath", "randomPathPerUser", "session"}, b.Names(), "the file adds to the defaults and replaces by name")
	rule, _ = b.Rule("randomPath")
	require.EqualValues(t, 5, rule.Fresh().PermitsPerSecond)

	_, err = ratelimit.LoadRules(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTheExampleFileIsRight(t *testing.T) {
	b, err := ratelimit.LoadRules("../../deploy/ratelimit.example.yaml")
	require.NoError(t, err)
	require.Greater(t, len(b.Names()), 4)
}

func TestRulesGuardRoutes(t *testing.T) {
	b := book(t, `
rules:
  - {name: all, route: "*"}
  - {name: get, route: GET /orders}
  - {name: node, route: /orders, scope: node}
  - {name: byName}
`)
	require.Equal(t, []string{"node", "all", "get"}, b.Guarding("GET", "/orders"))
	require.Equal(t, []string{"node", "all"}, b.Guarding("POST", "/orders"))
	require.Equal(t, []string{"all"}, b.Guarding("GET", "/sales"))
	_, err := ratelimit.ParseRules([]byte("rules: [{name: a, route: orders}]"))
	require.ErrorContains(t, err, "route")
}

// node is one API process' part.
type node struct {
	gate  *ratelimit.Gate
	admin *ratelimit.Admin
	sync  *ratelimit.Sync
}

func startNodeParts(t *testing.T, addr, yaml string) node {
	client := steadyClient(t, addr)
	b, store := book(t, yaml), ratelimit.NewRedis(client)
	s := ratelimit.NewSync(client, b)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx, nil)
	}()
	t.Cleanup(func() { stop(); <-done })
	g := newGate(t, b, store, ratelimit.GateOptions{Nodes: s.Nodes, Deadline: unhurried})
	return node{g, ratelimit.NewAdmin(b, s, store), s}
}

const liveRule = `{rules: [{name: r, by: [goods], algorithm: token_bucket, permitsPerSecond: 0.01, burst: 2, leases: 10}]}`

// admitted asks a few times and counts what passes.
func admittedBy(t testing.TB, g *ratelimit.Gate, goods int64) int {
	n := 0
	for range 20 {
		if decide(t, g, "r", ratelimit.Attributes{Goods: goods}).Allowed {
			n++
		}
	}
	return n
}

func TestAChangeReachesEveryNodeAndRefillsNothing(t *testing.T) {
	addr := servers.Redis(t).Addr()
	a, b := startNodeParts(t, addr, liveRule), startNodeParts(t, addr, liveRule)
	require.Equal(t, 2, admittedBy(t, a.gate, 1))
	require.Zero(t, admittedBy(t, b.gate, 1))

	burst := int64(5)
	began := time.Now()
	set, err := a.admin.Set(t.Context(), "r", "1", ratelimit.Change{Burst: &burst})
	require.NoError(t, err)
	require.Equal(t, "operator", set.Source)
	require.EqualValues(t, 5, set.Burst)
	total := 0
	require.Eventually(t, func() bool { total += admittedBy(t, b.gate, 1); return total > 0 }, time.Minute, 10*ms)
	t.Logf("the other node knew after %v", time.Since(began).Round(ms))
	if os.Getenv("RATELIMIT_BENCH") != "" {
		require.Less(t, time.Since(began), time.Second)
	}
	total += admittedBy(t, a.gate, 1) + admittedBy(t, b.gate, 1)
	require.Equal(t, 3, total, "the two permits that were taken stay taken")
	require.Equal(t, 2, admittedBy(t, a.gate, 2), "another goods keeps the rule's limit")

	require.NoError(t, b.admin.Delete(t.Context(), "r", "1"))
	got, err := a.admin.Get(t.Context(), "r", "1")
	require.NoError(t, err)
	require.Equal(t, "rule", got.Source)
	require.EqualValues(t, 2, *got.Remaining)
}

func TestABadCallChangesNothing(t *testing.T) {
	n := startNodeParts(t, servers.Redis(t).Addr(), liveRule)
	rate, magic := -1.0, ratelimit.Algorithm("magic")
	before, err := n.admin.Get(t.Context(), "r", "1")
	require.NoError(t, err)
	for field, change := range map[string]ratelimit.Change{
		"permitsPerSecond": {PermitsPerSecond: &rate}, "algorithm": {Algorithm: &magic},
	} {
		_, err := n.admin.Set(t.Context(), "r", "1", change)
		var wrong *ratelimit.FieldError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, field, wrong.Field)
	}
	_, err = n.admin.Set(t.Context(), "none", "1", ratelimit.Change{})
	require.ErrorIs(t, err, ratelimit.ErrNoRule)
	after, err := n.admin.Get(t.Context(), "r", "1")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestNodesAreCounted(t *testing.T) {
	addr := servers.Redis(t).Addr()
	a := startNodeParts(t, addr, liveRule)
	t.Run("a second one", func(t *testing.T) {
		startNodeParts(t, addr, liveRule)
		require.Eventually(t, func() bool { return a.sync.Nodes() == 2 }, time.Minute, 10*ms)
	})
	require.Eventually(t, func() bool { return a.sync.Nodes() == 1 }, time.Minute, 10*ms)
}

func TestOperatorsLimitsOutliveARedisThatLostThem(t *testing.T) {
	server := servers.Redis(t)
	n := startNodeParts(t, server.Addr(), liveRule)
	burst := int64(7)
	_, err := n.admin.Set(t.Context(), "r", ratelimit.AnyKey, ratelimit.Change{Burst: &burst})
	require.NoError(t, err)
	require.NoError(t, server.RestartEmpty(t.Context()))
	fresh := startNodeParts(t, server.Addr(), liveRule)
	require.Eventually(t, func() bool {
		got, err := fresh.admin.Get(context.Background(), "r", "3")
		return err == nil && got.Burst == 7
	}, time.Minute, 20*ms)
	require.Equal(t, 7, admittedBy(t, n.gate, 3))
}

func TestAdminSaysSoWhenRedisIsDown(t *testing.T) {
	server := servers.Redis(t)
	n := startNodeParts(t, server.Addr(), liveRule)
	require.NoError(t, server.Kill())
	_, err := n.admin.Set(t.Context(), "r", "1", ratelimit.Change{})
	require.Error(t, err)
	var wrong *ratelimit.FieldError
	require.False(t, errors.As(err, &wrong))
}
