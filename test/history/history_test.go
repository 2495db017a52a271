package history

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/scripts/lua"
)

// judgeTimeout limits porcupine's search, which ends within a second unless many outcomes are
// unknown.
const judgeTimeout = time.Minute

// maxHistories limits the histories of one test. The first one decides as a rule. Its successors
// replace one that porcupine has no verdict on, or whose clients never met the rule that is left
// out.
const maxHistories = 5

// TestHistory judges histories of one installation, with faults and with rules left out.
func TestHistory(t *testing.T) {
	r := installation.Start(t, suite, installation.Options{
		APIs: 2, Wired: true, Env: []string{"SECKILL_RATELIMIT_FILE=" + generousRules(t)},
	})
	faults := plainFaults()
	if *allFlag {
		faults = append(faults, moreFaults()...)
	}
	counts := make(map[string]int)
	for seed := *seedFlag; seed < *seedFlag+*seedsFlag; seed++ {
		for _, f := range faults {
			t.Run(fmt.Sprintf("%s/%d", f.name, seed), func(t *testing.T) {
				requireLinearizable(t, r, seed, f, counts)
			})
		}
		for _, rule := range rules() {
			t.Run(fmt.Sprintf("without_%s/%d", rule.name, seed), func(t *testing.T) {
				requireRejection(t, r, seed, rule)
			})
		}
	}
	if len(counts) == 0 {
		return // -run chose rules only
	}
	for _, reason := range []string{ok, queued, soldOut, limitReached, ended, conflict} {
		require.Positive(t, counts[reason], "no answer was %s", reason)
	}
}

// generousRules writes a file of rules that allow a buyer all random paths at once.
func generousRules(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	const text = "rules: [{name: randomPathPerUser, route: /randomPath, by: [user], scope: node, " +
		"algorithm: token_bucket, permitsPerSecond: 10000}]"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// requireLinearizable requires that porcupine finds an order of a history with a fault.
func requireLinearizable(
	t *testing.T, r *installation.Installation, seed uint64, f fault, counts map[string]int,
) {
	for n := range uint64(maxHistories) {
		ops := record(t, r, seed+n<<32, f, true)
		countAnswers(t, ops, counts)
		switch result, text := judge(t, ops); result {
		case porcupine.Ok:
			return
		case porcupine.Illegal:
			require.Fail(t, "the history is not linearizable", text)
		}
	}
	t.Fatalf("porcupine has no verdict on %d histories", maxHistories)
}

// requireRejection requires that porcupine rejects a history without a fault and without a rule.
func requireRejection(t *testing.T, r *installation.Installation, seed uint64, left rule) {
	for n := range uint64(maxHistories) {
		restore := left.leaveOut(t, r)
		ops := record(t, r, seed+n<<32, plainFaults()[0], false)
		restore()
		countAnswers(t, ops, make(map[string]int))
		if result, text := judge(t, ops); result == porcupine.Illegal {
			t.Log(text)
			left.requireLoaded(t, r)
			return
		}
	}
	t.Fatalf("porcupine rejects none of %d histories", maxHistories)
}

// judge has porcupine judge a history. For a rejected one it returns the part that no order
// explains, and draws all of it in a file of the test's artefact directory.
func judge(t *testing.T, ops []porcupine.Operation) (porcupine.CheckResult, string) {
	model := specification(units, limit)
	result, info := porcupine.CheckOperationsVerbose(model, ops, judgeTimeout)
	if result != porcupine.Illegal {
		return result, ""
	}
	file := filepath.Join(t.ArtifactDir(), "history.html")
	require.NoError(t, porcupine.VisualizePath(model, info, file))
	return result, "picture: " + file + "\n" + unexplained(ops, info)
}

// countAnswers counts the answers of each reason, "" for unknown outcomes.
func countAnswers(t *testing.T, ops []porcupine.Operation, counts map[string]int) {
	own := make(map[string]int)
	for _, op := range ops {
		if k := op.Input.(request).Kind; k != release && k != arrive {
			own[op.Output.(answer).Reason]++
		}
	}
	t.Logf("%d operations, by reason (none: unknown outcome): %v", len(ops), own)
	for reason, n := range own {
		counts[reason] += n
	}
}

// unexplained lists the sales without an order of all their operations. For each it has the end of
// the longest order that porcupine found and the first operations that it lacks.
func unexplained(ops []porcupine.Operation, info porcupine.LinearizationInfo) string {
	const shown = 12
	var b strings.Builder
	for n, part := range bySale(ops) {
		longest := longestOf(info.PartialLinearizationsOperations()[n])
		if len(longest) == len(part) {
			continue
		}
		fmt.Fprintf(&b, "sale %d, in order:\n", n)
		for _, op := range longest[max(0, len(longest)-shown):] {
			b.WriteString(row(op))
		}
		b.WriteString("and without a place:\n")
		missing := slices.DeleteFunc(part, func(op porcupine.Operation) bool {
			return slices.Contains(longest, op)
		})
		for _, op := range missing[:min(shown, len(missing))] {
			b.WriteString(row(op))
		}
	}
	return b.String()
}

func longestOf(orders [][]porcupine.Operation) (longest []porcupine.Operation) {
	for _, one := range orders {
		if len(one) > len(longest) {
			longest = one
		}
	}
	return longest
}

// row is an operation in a list, with its times in milliseconds.
func row(op porcupine.Operation) string {
	const ms = float64(time.Millisecond)
	return fmt.Sprintf("  %8.1f to %8.1f, client %d: %s\n", float64(op.Call)/ms,
		float64(op.Return)/ms, op.ClientId, describe(op.Input.(request), op.Output.(answer)))
}

// rule is a rule of a script, and a text of the same length that leaves the rule out.
type rule struct{ name, script, text, without string }

func rules() []rule {
	return []rule{
		{"buyers_limit", "reserve", "or 0) + q > limit then", "or 0) + q > 99999 then"},
		{"stock", "reserve", "elseif q > free then", "elseif q > 9999 then"},
		{"close", "reserve", " == 'closed'", " == 'none..'"},
		{
			"one_order_per_path", "reserve", "holding and order_in(holding, sn)",
			"holding and order_in(holding, '')",
		},
		{
			"one_release", "release",
			"'sold', -units)\n  redis.call('HINCRBY', sale, 'avail', units)",
			"'sold', -units)\n  redis.call('HINCRBY', sale,'avail',2*units)",
		},
	}
}

// leaveOut makes the installation run its script without the rule until the returned function is
// called. The programs send EVALSHA with the hash of their own text, which Redis does not know, and
// then the text itself. The wires to Redis alter that text.
func (r rule) leaveOut(t *testing.T, i *installation.Installation) (restore func()) {
	require.Len(t, r.without, len(r.text))
	require.Equal(t, 1, strings.Count(lua.Source(r.script), r.text), "the script has changed")
	alter := func(from, to string) {
		i.Wires["api-redis"].Alter(from, to)
		i.Wires["consumer-redis"].Alter(from, to)
	}
	alter(r.text, r.without)
	require.NoError(t, i.RedisClient(t).ScriptFlush(t.Context()).Err())
	return func() { alter("", "") }
}

// requireLoaded requires that Redis has the script without the rule.
func (r rule) requireLoaded(t *testing.T, i *installation.Installation) {
	altered := strings.Replace(lua.Source(r.script), r.text, r.without, 1)
	script := redis.NewScript(lua.Source("gate") + altered)
	require.Equal(t, []bool{true},
		must.Get(script.Exists(t.Context(), i.RedisClient(t)).Result())(t))
}
