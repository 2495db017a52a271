package rules_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestAdmin_ConcurrentChangesOfDifferentFieldsKeepBoth lets operators change different fields of
// one limit at once, by two nodes.
func TestAdmin_ConcurrentChangesOfDifferentFieldsKeepBoth(t *testing.T) {
	client := clientOf(t)
	a, b := newNode(t, client, nil, nil), newNode(t, client, nil, nil)
	for i := range int64(100) {
		burst, rate := i+1000, float64(i+1000)
		var both sync.WaitGroup
		set := func(n node, change rules.Change) {
			_, err := n.admin.Set(t.Context(), "r", "1", change)
			assert.NoError(t, err)
		}
		both.Go(func() { set(a, rules.Change{Burst: &burst}) })
		both.Go(func() { set(b, rules.Change{PermitsPerSecond: &rate}) })
		both.Wait()
		got := must.Get(a.admin.Get(t.Context(), "r", "1"))(t)
		require.Equal(t, burst, got.Burst)
		require.InDelta(t, rate, got.PermitsPerSecond, 0)
	}
}

// TestAdmin_ChangeMeanwhileIsReadAgain makes another operator's change between the read and the
// write of one. The audit log has the limit that the change replaced.
func TestAdmin_ChangeMeanwhileIsReadAgain(t *testing.T) {
	client := clientOf(t)
	other := newNode(t, client, nil, nil)
	var meanwhile []func() // what other operators do in each try
	own := func(context.Context, string, string) (ratelimit.Limit, bool) {
		if len(meanwhile) > 0 {
			meanwhile[0]()
			meanwhile = meanwhile[1:]
		}
		return ratelimit.Limit{}, false
	}
	var replaced []int64
	audit := func(_ context.Context, _, _ string, was ratelimit.Limit, _ *ratelimit.Limit) {
		replaced = append(replaced, was.Burst)
	}
	a, rate := newNode(t, client, own, audit), 7.0
	change := rules.Change{PermitsPerSecond: &rate}
	setOther := func(burst int64) func() { return func() { other.set(t, "1", burst) } }

	meanwhile = []func(){setOther(5)}
	set := must.Get(a.admin.Set(t.Context(), "r", "1", change))(t)
	require.EqualValues(t, 5, set.Burst)
	meanwhile = []func(){setOther(6)}
	require.NoError(t, a.admin.Delete(t.Context(), "r", "1"))
	require.Equal(t, []int64{5, 6}, replaced)

	meanwhile = []func(){func() { other.set(t, "2", 8) }}
	set = must.Get(a.admin.Set(t.Context(), "r", "1", change))(t)
	require.EqualValues(t, 100, set.Burst, "a change of another key does not matter")

	meanwhile = []func(){setOther(1), setOther(2), setOther(3), setOther(4), setOther(5)}
	_, err := a.admin.Set(t.Context(), "r", "1", change)
	require.ErrorContains(t, err, "other operators changed the limit")
	require.Len(t, replaced, 3)
	require.EqualValues(t, 5, a.burst(t, "1"))
}

// TestAdmin_FailoverMeanwhileLosesNoChange has Redis fail over to a replica that lags between the
// read and the write of a change. The limit of its key is the same there, and another key's is not.
func TestAdmin_FailoverMeanwhileLosesNoChange(t *testing.T) {
	client := clientOf(t)
	meanwhile := func() {}
	own := func(context.Context, string, string) (ratelimit.Limit, bool) {
		meanwhile()
		return ratelimit.Limit{}, false
	}
	a := newNode(t, client, own, nil)
	a.set(t, "1", 50)
	failOver := copyOf(t, client)
	a.set(t, "2", 6)
	meanwhile = func() {
		failOver()
		meanwhile = func() {}
	}
	rate := 7.0
	set := must.Get(a.admin.Set(t.Context(), "r", "1", rules.Change{PermitsPerSecond: &rate}))(t)
	require.EqualValues(t, 50, set.Burst)
	require.EqualValues(t, 6, a.burst(t, "2"))
	require.EqualValues(t, 6, newNode(t, client, nil, nil).burst(t, "2"))
}

// TestAdmin_ShowsLimitsAndTheirSources checks a key of each kind, and the list.
func TestAdmin_ShowsLimitsAndTheirSources(t *testing.T) {
	client := clientOf(t)
	b := book(t, `{rules: [{name: n, by: [ip], scope: node, limit: 9},
		{name: g, by: [goods], algorithm: token_bucket, permitsPerSecond: 100, burst: 100}]}`)
	ofSale := ratelimit.Limit{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1, Burst: 4}
	own := func(_ context.Context, rule, key string) (ratelimit.Limit, bool) {
		if key == "invalid" {
			return ratelimit.Limit{}, true
		}
		return ofSale, rule == "g" && (key == "5" || key == rules.AnyKey)
	}
	sync := rules.NewSync(client, b)
	admin := rules.NewAdmin(b, sync, redislimit.New(client, nil), own, nil)
	burst := int64(7)
	changed := must.Get(admin.Set(t.Context(), "g", "6", rules.Change{Burst: &burst}))(t)
	of := func(rule, key string, l ratelimit.Limit, source string) rules.Setting {
		return rules.Setting{Type: rule, Key: key, Limit: l, Source: source}
	}
	usage := func(s rules.Setting, remaining int64) rules.Setting {
		s.Remaining, s.ResetMillis = &remaining, new(int64)
		return s
	}
	g := ruleNamed(t, b, "g").WithDefaults()
	n, ofOperator := ruleNamed(t, b, "n").WithDefaults(), g
	ofOperator.Burst = burst
	require.Equal(t, usage(of("g", "6", ofOperator, "operator"), 7), changed)
	for _, want := range []rules.Setting{
		changed, of("g", rules.AnyKey, g, "rule"), of("n", "10.0.0.1", n, "rule"),
		usage(of("g", "4", g, "rule"), 100), usage(of("g", "5", ofSale, "sale"), 4),
		usage(of("g", "invalid", g, "rule"), 100),
	} {
		require.Equal(t, want, must.Get(admin.Get(t.Context(), want.Type, want.Key))(t))
	}
	changed.Remaining, changed.ResetMillis = nil, nil
	ofAll := of("g", rules.AnyKey, g, "rule")
	for range 2 {
		require.Equal(t, []rules.Setting{ofAll, changed, of("n", rules.AnyKey, n, "rule")},
			must.Get(admin.List(t.Context()))(t))
		ofAll = must.Get(admin.Set(t.Context(), "g", rules.AnyKey, rules.Change{Burst: &burst}))(t)
		require.Equal(t, of("g", rules.AnyKey, ofOperator, "operator"), ofAll)
	}
}

// TestAdmin_LocalAlgorithmsAreOfNodesRules changes limits to an algorithm that Redis does not have.
func TestAdmin_LocalAlgorithmsAreOfNodesRules(t *testing.T) {
	client := clientOf(t)
	b := book(t, `{rules: [{name: n, by: [ip], scope: node}, {name: g, by: [goods]}]}`)
	admin := rules.NewAdmin(b, rules.NewSync(client, b), redislimit.New(client, nil), nil, nil)
	change := rules.Change{Algorithm: new(ratelimit.SubWindows)}
	must.Get(admin.Set(t.Context(), "n", "1", change))(t)
	_, err := admin.Set(t.Context(), "g", "1", change)
	require.ErrorContains(t, err, "works in one process only")
	require.Equal(t, ratelimit.SlidingLog, must.Get(admin.Get(t.Context(), "g", "1"))(t).Algorithm)
}

func TestCheckKey_TakesOneTo200Bytes(t *testing.T) {
	require.NoError(t, rules.CheckKey(strings.Repeat("k", 200)))
	require.Error(t, rules.CheckKey(strings.Repeat("k", 201)))
	require.Error(t, rules.CheckKey(""))
}

// TestAdmin_RateHasOneForm checks that a change with both forms of a rate changes nothing.
func TestAdmin_RateHasOneForm(t *testing.T) {
	n, rate, limit := newNode(t, clientOf(t), nil, nil), 7.0, int64(3)
	_, err := n.admin.Set(t.Context(), "r", "1",
		rules.Change{PermitsPerSecond: &rate, Limit: &limit})
	field, ok := errors.AsType[*ratelimit.FieldError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "permitsPerSecond", field.Field)
	require.Equal(t, "rule", must.Get(n.admin.Get(t.Context(), "r", "1"))(t).Source)
}
