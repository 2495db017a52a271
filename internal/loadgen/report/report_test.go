package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/loadgen/verdict"
	"flashsale.dev/seckill/internal/testing/must"
)

var update = flag.Bool("update", false, "write testdata anew")

// sample returns a report with all parts.
func sample() Report {
	steps := func(p99 float64) map[buyer.Step]loadgen.Interval {
		return map[buyer.Step]loadgen.Interval{
			buyer.StepPath:      {Count: 10, P50: 1.25, P99: p99, Max: 2 * p99},
			buyer.StepBuy:       {Count: 5, P50: 3, P99: 30, Max: 40},
			loadgen.SpanWritten: {Count: 4, P50: 20, P99: 200, Max: 210},
		}
	}
	result := loadgen.Result{
		Started: time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC),
		Took:    3 * time.Second, Planned: 30, Arrived: 30,
		Outcomes: map[loadgen.Kind]map[buyer.Outcome]int{
			loadgen.Polite:  {buyer.Won: 10, buyer.SoldOut: 18},
			loadgen.Hostile: {"all refused": 2},
		},
		Steps: []loadgen.Step{
			{
				Step: buyer.StepPath, Count: 30, Rate: 10, P50: 1.25, P90: 2, P99: 9, P999: 10,
				Max: 11, Answers: map[string]int64{"OK": 12, "SOLD_OUT": 18},
			},
			{
				Step: buyer.StepBuy, Count: 12, Rate: 4, P50: 3, P90: 4, P99: 30, P999: 31, Max: 32,
				Faults: 1, Errors: 1,
				Answers: map[string]int64{"QUEUED": 10, "error: timeout": 1, "UNAVAILABLE": 1},
			},
			{Step: loadgen.SpanLag, Count: 30, Rate: 10, P99: .5, Max: .75},
		},
	}
	for i := range 3 {
		result.Points = append(result.Points, loadgen.Point{
			At: float64(i + 1), Span: 1, Arrived: 10, Won: 3, SoldOut: 6, Other: 1,
			InFlight: 5 - i, Steps: steps(5 + float64(i)),
		})
	}
	result.Points[1].Steps = map[buyer.Step]loadgen.Interval{} // an interval without requests
	v := verdict.Verdict{
		OK: false, Promised: 10, Found: 1, Orders: map[string]int{"created": 9}, More: 3,
		Differences: []string{`lost: <script>alert("x")</script>`},
		Rules: []verdict.Rule{
			{Name: "every 202 has an order", Count: 4}, {Name: "nobody has more", OK: true},
		},
	}
	plan := loadgen.Plan{
		Bases: []string{"http://127.0.0.1:8080"}, GoodsID: "9", Buyers: 30, Rate: 10, Users: 1,
	}
	settings := Settings{Plan: plan, Stock: 10, Permits: 5, Compress: 60}
	r := New(settings, result, v, false)
	r.Notes = []string{"read this"}
	return r
}

// shape lists every field of a JSON value by its path. In a path, [] is any entry of a list. * is
// any name of a map whose names are data.
func shape(path string, v any, into map[string]string) {
	into[path] = fmt.Sprintf("%T", v)
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if slices.Contains([]string{
				".outcomes", ".outcomes.*", ".points[].steps", ".steps[].answers",
				".verdict.orders",
			}, path) {
				name = "*"
			}
			shape(path+"."+name, inner, into)
		}
	case []any:
		for _, inner := range v {
			shape(path+"[]", inner, into)
		}
	}
}

// TestJSON_KeepsItsSchema compares the report's fields with the stored schema, because programs
// read the JSON. A removed field or a changed type needs a new schema number. The flag -update
// stores new fields.
func TestJSON_KeepsItsSchema(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, sample().JSON(&text))
	var v any
	require.NoError(t, json.Unmarshal(text.Bytes(), &v))
	fields := map[string]string{}
	shape("", v, fields)
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		lines = append(lines, path+" "+fields[path])
	}
	got, name := strings.Join(lines, "\n")+"\n", fmt.Sprintf("testdata/schema-%d.txt", schema)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(got), 0o600))
	}
	want := must.Get(os.ReadFile(name))(t)
	require.Equal(t, string(want), got)
}

func TestHTML_IsSelfContained(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, sample().HTML(&text))
	page := text.String()
	require.NotRegexp(t,
		regexp.MustCompile(`(?i)(src|href|xlink:href|action)\s*=|url\(|@import|<script|<link|<img|<iframe`), page)
	require.Contains(t, page, "default-src 'none'")
	require.Contains(t, page, "prefers-color-scheme: dark")
	require.Equal(t, 4, strings.Count(page, "<svg"))
	require.Contains(t, page, "&lt;script&gt;", "the page must escape servers' text")
	require.NotContains(t, page, "NaN")
	for _, said := range []string{
		"every 202 has an order", "violated 4 times", "and 3 more", "UNAVAILABLE 1", "read this",
		"path p99",
	} {
		require.Contains(t, page, said)
	}
}

func TestReport_RendersEmptyRun(t *testing.T) {
	var text bytes.Buffer
	r := New(Settings{}, loadgen.Result{}, verdict.Verdict{OK: true}, false)
	require.NoError(t, r.HTML(&text))
	require.NoError(t, r.Table(&text))
	require.NoError(t, r.JSON(&text))
	require.NotContains(t, text.String(), "NaN")
}

func TestTable_ShowsVerdict(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, sample().Table(&text))
	for _, said := range []string{
		"30 buyers in 3.0 s (10/s), 42 calls (14/s)", "OK 12  SOLD_OUT 18", "won 10",
		"all refused 2", "FAIL: 1 of 2 rules violated",
		"VIOLATED 4 times: every 202 has an order", "ok   nobody has more", "and 3 more",
	} {
		require.Contains(t, text.String(), said)
	}
	require.Error(t, sample().Table(broken{}))
	require.Error(t, sample().JSON(broken{}))
	require.Error(t, sample().HTML(broken{}))
}

func TestTable_BeginsWithTheVerdict(t *testing.T) {
	for ok, begins := range map[bool]string{true: "PASS: 0 buyers", false: "FAIL: "} {
		var text bytes.Buffer
		r := New(Settings{}, loadgen.Result{}, verdict.Verdict{OK: ok}, false)
		require.NoError(t, r.Table(&text))
		require.True(t, strings.HasPrefix(text.String(), begins), text.String())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestTicks_AreRoundAndInRange(t *testing.T) {
	for _, to := range []float64{1, 3, 7.5, 10, 42, 999, 123456} {
		ticks := scale{to: to, high: to}.ticks()
		require.GreaterOrEqual(t, len(ticks), 3, to)
		require.LessOrEqual(t, len(ticks), 8, to)
		require.LessOrEqual(t, ticks[len(ticks)-1].At, to*1.001)
	}
	ticks := scale{from: 1, to: 100, high: 10}.ticks()
	require.Equal(t, []tick{{0, "1"}, {5, "10"}, {10, "100"}}, ticks)
}

func TestPath_HasGapAtNaN(t *testing.T) {
	values := map[float64]float64{1: 1, 2: math.NaN(), 3: 2}
	l := line{value: func(p loadgen.Point) float64 { return values[p.At] }}
	s := scale{to: 10, high: 10}
	require.Equal(t, "M1.0 1.0h0M3.0 2.0h0",
		l.path([]loadgen.Point{{At: 1}, {At: 2}, {At: 3}}, s, s))
}
