package rules_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
)

func book(t testing.TB, yaml string) *rules.Rulebook {
	return must.Get(rules.New(must.Get(rules.Parse([]byte(yaml)))(t)...))(t)
}

func ruleNamed(t testing.TB, b *rules.Rulebook, name string) *rules.Compiled {
	return must.Get(b.Find(name))(t)
}

// thousand is the limit of the default rule of /randomPath.
var thousand = ratelimit.Limit{
	Algorithm: ratelimit.Reserve, PermitsPerSecond: 1000, MaxBurstSeconds: 1, MaxWaitMillis: 1000,
}

// TestParse_ErrorsNameTheLine adds lines to a file with one rule, named a.
func TestParse_ErrorsNameTheLine(t *testing.T) {
	for lines, says := range map[string]string{
		"    colour: red":                            "line 3: field colour not found",
		"    limit: many":                            "line 3: cannot unmarshal",
		"    algorithm: magic":                       "line 3: rules[0] a: algorithm: unknown \"magic\"",
		"    intervalSeconds: 0":                     "line 3: rules[0] a: intervalSeconds",
		"    descriptor: [a, \"=b\"]":                "line 3: rules[0] a: descriptor",
		"    descriptor: [a=]":                       "line 3: rules[0] a: descriptor",
		"    domain: edge":                           "line 3: rules[0] a: domain",
		"    by: [moon]":                             "line 3: rules[0] a: by",
		"    by: [ip, ip]":                           "line 3: rules[0] a: by",
		"    limit: 1\n    limit: 2":                 "line 4: mapping key \"limit\" already defined",
		"    onError: panic":                         "line 3: rules[0] a: onError",
		"    onMissingKey: cry":                      "line 3: rules[0] a: onMissingKey",
		"    leases: 5000":                           "line 3: rules[0] a: leases",
		"    algorithm: sub_windows":                 "algorithm: sub_windows works in one process only",
		"    algorithm: sliding_log\n    limit: 101": "line 4: rules[0] a: limit: a sliding_log of more",
		"    maxWait: 1s\n    maxWaitMillis: 5":      "maxWait",
		"    permitsPerSecond: 5\n    maxWait: 48h":  "line 4: rules[0] a: maxWait: must be 0s",
		"    interval: 48h":                          "line 3: rules[0] a: interval: must be 1ms",
		"    interval: 0s":                           "line 3: rules[0] a: interval: must be 1ms",
		"    fallback:\n      code: 0":               "line 4: rules[0] a: fallback.code",
		"    permitsPerSecond: 0.000000000001":       "permitsPerSecond",
		"  - name: b\n    permitsPerSecond: -1":      "line 4: rules[1] b: permitsPerSecond",
		"  - name: a":                                "line 3: rules[1] a: name: \"a\" occurs twice",
		"  - limit: 5":                               "line 3: rules[1]: name",
		"    scope: moon":                            "line 3: rules[0] a: scope",
		"    by: [goods, user, ip, route, global]":   "line 3: rules[0] a: by",
		"    leases: -1":                             "line 3: rules[0] a: leases",
		"    fallback: {code: 1000000}":              "line 3: rules[0] a: fallback.code",
		"    interval: 1s\n    intervalSeconds: 5":   "interval",
		"---\nrules: [":                              "line 4: did not find expected node content",
		"rules: [":                                   "line 3: ",
		"---":                                        "line 3: a second YAML document",
		"}":                                          "did not find expected key",
		"    by: [user, ~]":                          "line 3: a list has an empty entry",
		"  -":                                        "line 3: a list has an empty entry",
		"rule: []":                                   "line 3: field rule not found",
	} {
		_, err := rules.Parse([]byte("rules:\n  - name: a\n" + lines + "\n"))
		require.ErrorContains(t, err, says, lines)
	}
}

// TestParse_EachFieldEndsAtItsBound checks the longest value of each field, and one that is longer
// by one.
func TestParse_EachFieldEndsAtItsBound(t *testing.T) {
	text := func(n int) string { return strings.Repeat("a", n) }
	list := func(n int) string { return "[" + strings.Repeat("a, ", n) + "]" }
	for field, value := range map[string]struct {
		most int
		of   func(int) string
	}{
		"leases: %s":                       {1000, strconv.Itoa},
		"fallback: {code: %s}":             {999_999, strconv.Itoa},
		"message: %s":                      {500, text},
		"fallback: {code: 1, message: %s}": {500, text},
		"descriptor: [%s]":                 {200, text},
		"descriptor: %s":                   {8, list},
	} {
		parse := func(n int) error {
			_, err := rules.Parse(fmt.Appendf(nil, "rules: [{name: a, "+field+"}]\n", value.of(n)))
			return err
		}
		require.NoError(t, parse(value.most), field)
		require.Error(t, parse(value.most+1), field)
	}
	file := []byte("rules: [{name: a}]\n#" + text(1<<20))[:1<<20]
	must.Get(rules.Parse(file))(t)
	_, err := rules.Parse(append(file, 'a'))
	require.ErrorContains(t, err, "larger than")
	for _, accepted := range []string{
		"by: [goods, user, ip, route]", "limit: ~", "interval: 1s, intervalSeconds: 1",
		"permitsPerSecond: 5, maxWait: 1s, maxWaitMillis: 1000",
	} {
		_, err := rules.Parse([]byte("rules: [{name: a, " + accepted + "}]"))
		require.NoError(t, err, accepted)
	}
}

// TestParse_RatesWithManyDigits has rates whose decimal form ends nowhere: 1000/i a second is one
// permit in i ms. It checks the time at which the second permit is good.
func TestParse_RatesWithManyDigits(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := 1; i <= 1000; i++ {
		fmt.Fprintf(&text, "  - {name: r%d, permitsPerSecond: %v}\n", i, 1000/float64(i))
	}
	b := book(t, text.String())
	for i := 1; i <= 1000; i++ {
		params := b.Params(ruleNamed(t, b, fmt.Sprintf("r%d", i)), "1", nil)
		require.Equal(t, time.Duration(i)*time.Millisecond, params.TimeFor(1), "1000/%d", i)
		require.Equal(t, int64(i)*1000*params.Scale, params.Cost, "1000/%d", i)
	}
}

// TestParse_WindowsHaveWholeRates checks that 2.5/s is refused where it cannot be exact, and exact
// in its other form.
func TestParse_WindowsHaveWholeRates(t *testing.T) {
	for _, algorithm := range []string{
		"fixed_window", "sliding_window", "sub_windows", "sliding_log",
	} {
		const rule = "rules: [{name: r, scope: node, algorithm: %s, %s}]"
		_, err := rules.Parse(fmt.Appendf(nil, rule, algorithm, "permitsPerSecond: 2.5"))
		require.ErrorContains(t, err, "permitsPerSecond: of a window must be a whole number",
			algorithm)
		b := book(t, fmt.Sprintf(rule, algorithm, "limit: 5, interval: 2s"))
		quota, took := b.Params(ruleNamed(t, b, "r"), "1", nil).Quota()
		require.EqualValues(t, 5, quota, algorithm)
		require.Equal(t, 2*time.Second, took, algorithm)
	}
}

func TestParse_CompletesARuleWithDefaults(t *testing.T) {
	b := book(t, `
rules:
  - name: bare
  - {name: small, limit: 100, interval: 1s}
  - {name: large, limit: 101, interval: 1s}
  - {name: rate, permitsPerSecond: 50}
  - {name: wait, permitsPerSecond: 50, maxWait: 250ms}
  - {name: bucket, algorithm: token_bucket, permitsPerSecond: 50}
  - {name: window, algorithm: fixed_window, limit: 10, interval: 500ms}
`)
	rate := thousand
	rate.PermitsPerSecond = 50
	wait := rate
	wait.MaxWaitMillis = 250
	for name, want := range map[string]ratelimit.Limit{
		"bare":  {Algorithm: ratelimit.SlidingLog, Limit: 100, IntervalSeconds: 60},
		"small": {Algorithm: ratelimit.SlidingLog, Limit: 100, IntervalSeconds: 1},
		"large": {Algorithm: ratelimit.SlidingWindow, Limit: 101, IntervalSeconds: 1},
		"rate":  rate, "wait": wait,
		"bucket": {Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 50, MaxBurstSeconds: 1},
		"window": {Algorithm: ratelimit.FixedWindow, Limit: 10, IntervalSeconds: 0.5},
	} {
		rule := ruleNamed(t, b, name)
		require.Equal(t, want, rule.WithDefaults(), name)
		require.Equal(t, []string{"route"}, rule.By)
		require.Equal(t, rules.OnErrorLocal, rule.OnError)
	}
}

// TestChange_ApplySetsQuotaAndWindow checks the quota and the window of a limit after each kind of
// change.
func TestChange_ApplySetsQuotaAndWindow(t *testing.T) {
	rate, limit, interval, burst := 50.0, int64(5), 10.0, 2.0
	window, meter := ratelimit.FixedWindow, ratelimit.LeakyMeter
	for name, c := range map[string]struct {
		change rules.Change
		quota  int64
		window time.Duration
	}{
		"nothing":              {rules.Change{}, 1000, time.Second},
		"a rate":               {rules.Change{PermitsPerSecond: &rate}, 50, time.Second},
		"a burst":              {rules.Change{MaxBurstSeconds: &burst}, 2000, 2 * time.Second},
		"a window of its rate": {rules.Change{Algorithm: &window}, 1000, time.Second},
		"a window of another rate": {
			rules.Change{Algorithm: &window, PermitsPerSecond: &rate},
			50, time.Second,
		},
		"a rate said as limit and time": {
			rules.Change{Limit: &limit, IntervalSeconds: &interval},
			1, 2 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			quota, took := must.Get(c.change.Apply(thousand).Params())(t).Quota()
			require.Equal(t, c.quota, quota)
			require.Equal(t, c.window, took)
		})
	}
	_, err := rules.Change{Algorithm: &meter}.Apply(thousand).Params()
	require.ErrorContains(t, err, "burst")
}

// TestChange_ReplacesWhatHasAnotherMeaning checks the fields that a change drops or keeps.
func TestChange_ReplacesWhatHasAnotherMeaning(t *testing.T) {
	rate, limit, interval := 7.0, int64(5), 10.0
	reserve, bucket, window := ratelimit.Reserve, ratelimit.TokenBucket, ratelimit.FixedWindow
	held := ratelimit.Limit{
		Algorithm: reserve, PermitsPerSecond: 3, MaxBurstSeconds: 9, MaxWaitMillis: 9,
	}
	inTime := ratelimit.Limit{
		Algorithm: reserve, Limit: 3, IntervalSeconds: 1, MaxBurstSeconds: 9, MaxWaitMillis: 9,
	}
	of := func(l ratelimit.Limit, change func(*ratelimit.Limit)) ratelimit.Limit {
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		held   ratelimit.Limit
		change rules.Change
		want   ratelimit.Limit
	}{
		"the same algorithm": {held, rules.Change{Algorithm: &reserve}, held},
		"another algorithm": {
			held,
			rules.Change{Algorithm: &bucket},
			ratelimit.Limit{Algorithm: bucket, PermitsPerSecond: 3, MaxBurstSeconds: 1},
		},
		"a window by its limit": {
			held,
			rules.Change{Algorithm: &window, Limit: &limit},
			ratelimit.Limit{Algorithm: window, Limit: 5, IntervalSeconds: 60},
		},
		"a window by its interval": {
			held,
			rules.Change{Algorithm: &window, IntervalSeconds: &interval},
			ratelimit.Limit{Algorithm: window, Limit: 100, IntervalSeconds: 10},
		},
		"a rate": {
			inTime, rules.Change{PermitsPerSecond: &rate}, of(held, func(l *ratelimit.Limit) {
				l.PermitsPerSecond = 7
			}),
		},
		"a limit": {inTime, rules.Change{Limit: &limit}, of(inTime, func(l *ratelimit.Limit) {
			l.Limit = 5
		})},
		"a limit alone": {held, rules.Change{Limit: &limit}, of(held, func(l *ratelimit.Limit) {
			l.PermitsPerSecond, l.Limit = 0, 5
		})},
		"an interval alone": {
			held, rules.Change{IntervalSeconds: &interval}, of(held, func(l *ratelimit.Limit) {
				l.PermitsPerSecond, l.IntervalSeconds = 0, 10
			}),
		},
	} {
		require.Equal(t, c.want, c.change.Apply(c.held), name)
	}
}

// TestChange_BurstHasOneForm checks that seconds replace a burst in permits, of the algorithms that
// have both forms.
func TestChange_BurstHasOneForm(t *testing.T) {
	seconds, permits := 2.0, int64(7)
	for algorithm, want := range map[ratelimit.Algorithm]int64{
		ratelimit.TokenBucket: 20, ratelimit.Reserve: 20, ratelimit.Nginx: 51,
		ratelimit.LeakyMeter: 50,
	} {
		held := ratelimit.Limit{
			Algorithm: algorithm, PermitsPerSecond: 10, Burst: 50, NoDelay: true,
		}
		quota := func(change rules.Change) int64 {
			quota, _ := must.Get(change.Apply(held).Params())(t).Quota()
			return quota
		}
		require.Equal(t, want, quota(rules.Change{MaxBurstSeconds: &seconds}), algorithm)
		require.Equal(t, quota(rules.Change{Burst: &permits}),
			quota(rules.Change{MaxBurstSeconds: &seconds, Burst: &permits}), algorithm)
	}
}

// TestParse_RateHasOneForm checks that a rule with both forms of a rate is refused, for algorithms
// of each kind. Zeros are no form, because a limiter is shown with all fields.
func TestParse_RateHasOneForm(t *testing.T) {
	for _, algorithm := range []string{
		"token_bucket", "reserve", "smooth_bursty", "nginx", "leaky_queue, burst: 1",
		"smooth_warming_up", "fixed_window", "sliding_window", "sub_windows", "sliding_log",
	} {
		const rule = "rules: [{name: r, scope: node, algorithm: %s, permitsPerSecond: 7, %s}]"
		for _, second := range []string{
			"limit: 3", "intervalSeconds: 2", "limit: 3, interval: 1s",
		} {
			_, err := rules.Parse(fmt.Appendf(nil, rule, algorithm, second))
			require.ErrorContains(t, err, "permitsPerSecond: is a rate, as limit", algorithm)
		}
		_, err := rules.Parse(fmt.Appendf(nil, rule, algorithm, "limit: 0, intervalSeconds: 0"))
		require.NoError(t, err, algorithm)
	}
}

func TestLoad_AddsToTheDefaults(t *testing.T) {
	b := must.Get(rules.Load(""))(t)
	require.Equal(t, thousand, ruleNamed(t, b, "randomPath").WithDefaults())

	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path,
		[]byte("rules: [{name: randomPath, by: [goods], permitsPerSecond: 5}, {name: own}]"),
		0o600))
	b = must.Get(rules.Load(path))(t)
	require.EqualValues(t, 5, ruleNamed(t, b, "randomPath").WithDefaults().PermitsPerSecond)
	require.Equal(t, []string{"randomPathPerUser", "randomPath"},
		routeRules(b, "POST", "/randomPath"), "it has the default's route")
	for _, name := range []string{"randomPathPerUser", "session", "failedApiKey", "signIn"} {
		ruleNamed(t, b, name) // the file adds rules and replaces defaults by name
	}

	_, err := rules.Load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLoad_ExampleFile(t *testing.T) {
	b := must.Get(rules.Load("../../../deploy/ratelimit.example.yaml"))(t)
	require.Greater(t, len(routeRules(b, "POST", "/randomPath")), 2, "rules beyond the defaults")
}

// routeRules returns the names of a route's rules.
func routeRules(b *rules.Rulebook, method, route string) (names []string) {
	for _, rule := range b.ForRoute(method, route) {
		names = append(names, rule.Name)
	}
	return names
}

func TestRulebook_ForRoutePutsNodeRulesFirst(t *testing.T) {
	b := book(t, `
rules:
  - {name: all, route: "*"}
  - {name: get, route: GET /orders}
  - {name: node, route: /orders, scope: node}
  - {name: byName}
`)
	for range 2 { // the second time from the cache
		require.Equal(t, []string{"node", "all", "get"}, routeRules(b, "GET", "/orders"))
		require.Equal(t, []string{"node", "all", "get"}, routeRules(b, "HEAD", "/orders"))
		require.Equal(t, []string{"node", "all"}, routeRules(b, "POST", "/orders"))
		require.Equal(t, []string{"all"}, routeRules(b, "GET", "/sales"))
		require.Equal(t, []string{"all"}, routeRules(b, "GET", ""), "a path without a route")
	}
	for i := range 600 { // more than the cache holds
		require.Equal(t, []string{"all"}, routeRules(b, "GET", fmt.Sprint("/", i)))
	}
	require.Equal(t, []string{"node", "all", "get"}, routeRules(b, "GET", "/orders"))
	lookup := func() { b.ForRoute("GET", "/orders") }
	require.Zero(t, testing.AllocsPerRun(100, lookup), "a route in the cache makes no list")
	_, err := rules.Parse([]byte("rules: [{name: a, route: orders}]"))
	require.ErrorContains(t, err, "route")
}

// TestChange_OfTheAlgorithmKeepsTheRate changes the algorithm of a limit of five in ten seconds.
func TestChange_OfTheAlgorithmKeepsTheRate(t *testing.T) {
	limit, interval, rate := int64(7), 2.0, 3.0
	window, bucket := ratelimit.SlidingWindow, ratelimit.TokenBucket
	for name, c := range map[string]struct {
		change  rules.Change
		permits int64
		seconds time.Duration
	}{
		"a window":         {rules.Change{Algorithm: &window}, 5, 10},
		"a bucket":         {rules.Change{Algorithm: &bucket}, 1, 2},
		"another limit":    {rules.Change{Algorithm: &window, Limit: &limit}, 7, 10},
		"another interval": {rules.Change{Algorithm: &window, IntervalSeconds: &interval}, 5, 2},
		"a rate":           {rules.Change{Algorithm: &window, PermitsPerSecond: &rate}, 3, 1},
	} {
		for _, from := range []ratelimit.Algorithm{ratelimit.FixedWindow, ratelimit.LeakyMeter} {
			five := ratelimit.Limit{Algorithm: from, Limit: 5, IntervalSeconds: 10, Burst: 1}
			quota, length := must.Get(c.change.Apply(five).Params())(t).Quota()
			require.Equal(t, c.permits, quota, "%s from %s", name, from)
			require.Equal(t, c.seconds*time.Second, length, "%s from %s", name, from)
		}
	}
}

// TestChange_HasTheFieldsOfALimit compares the field names, because Change.Apply copies fields by
// name. The API and the rules file must also spell them alike.
func TestChange_HasTheFieldsOfALimit(t *testing.T) {
	change, limit := reflect.TypeFor[rules.Change](), reflect.TypeFor[ratelimit.Limit]()
	require.Equal(t, limit.NumField(), change.NumField())
	for i := range change.NumField() {
		own, of := change.Field(i), limit.Field(i)
		require.Equal(t, of.Name, own.Name)
		require.Equal(t, reflect.PointerTo(of.Type), own.Type)
		require.Equal(t, of.Tag.Get("yaml"), own.Tag.Get("yaml"))
		json := strings.TrimSuffix(of.Tag.Get("json"), ",omitempty")
		require.Equal(t, json+",omitempty", own.Tag.Get("json"))
	}
}

// FuzzParseRules checks that the parser turns any text into usable rules or an error.
func FuzzParseRules(f *testing.F) {
	example, err := os.ReadFile("../../../deploy/ratelimit.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte("rules: [{name: hot, by: [goods], permitsPerSecond: 1000, leases: 10}]"))
	f.Add([]byte("rules: [{name: a, permitsPerSecond: 1e-9, maxWait: -1s}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := rules.Parse(text)
		if err != nil {
			return
		}
		if _, err := rules.New(list...); err != nil {
			t.Fatalf("New refused rules that Parse accepted: %v", err)
		}
	})
}
