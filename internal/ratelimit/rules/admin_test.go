package rules_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
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
