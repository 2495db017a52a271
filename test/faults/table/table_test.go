// Package table tests that reports/faults.md has the table of the lines that fault runs print
// (-faults.out): a row for each fault, in the order of first appearance. The flag -update makes the
// table anew.
package table

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/reference"
)

var update = flag.Bool("update", false, "rewrite the table in reports/faults.md")

func TestReport_HasEveryRecordedRun(t *testing.T) {
	runs := must.Get(os.ReadFile("../../../reports/fault-runs.txt"))(t)
	reference.Check(t, *update, "../../../reports/faults.md", "faults",
		"go test ./test/faults/table -update", "\n"+must.Get(tableOf(string(runs)))(t)+"\n")
}

// row sums up the runs of one fault on one topology.
type row struct {
	name       string
	sums       [6]int64 // orders, lost, doubled, oversold, broken, violations
	recoveries []time.Duration
}

func tableOf(runs string) (string, error) {
	var rows []*row
	for line := range strings.Lines(runs) {
		run, err := parse(strings.TrimSpace(line))
		if err != nil {
			return "", fmt.Errorf("line %q: %w", line, err)
		}
		i := slices.IndexFunc(rows, func(r *row) bool { return r.name == run.name })
		if i < 0 {
			i, rows = len(rows), append(rows, &row{name: run.name})
		}
		for field, n := range run.sums {
			rows[i].sums[field] += n
		}
		rows[i].recoveries = append(rows[i].recoveries, run.recoveries...)
	}
	table := "| fault | runs | orders | lost | doubled | oversold | broken | violations " +
		"| recovery, median | worst |\n|---|---|---|---|---|---|---|---|---|---|\n"
	for _, r := range rows {
		table += r.String()
	}
	return table, nil
}

// parse reads the line of one run. Its name is the fault, and the clusters and newest servers on
// which it ran.
func parse(line string) (run row, err error) {
	line, on, clusters := strings.Cut(line, " on=")
	var seed, recovery int64
	s := &run.sums
	_, err = fmt.Sscanf(line, "fault=%s seed=%d orders=%d lost=%d doubled=%d oversold=%d "+
		"broken=%d recovery_ms=%d violations=%d",
		&run.name, &seed, &s[0], &s[1], &s[2], &s[3], &s[4], &recovery, &s[5])
	if clusters {
		run.name += " (" + strings.ReplaceAll(on, ",", ", ") + ")"
	}
	run.recoveries = []time.Duration{time.Duration(recovery) * time.Millisecond}
	return run, err
}

func (r *row) String() string {
	slices.Sort(r.recoveries)
	n := len(r.recoveries)
	median, worst := (r.recoveries[(n-1)/2]+r.recoveries[n/2])/2, r.recoveries[n-1]
	sums := strings.Trim(strings.ReplaceAll(fmt.Sprint(r.sums), " ", " | "), "[]")
	return fmt.Sprintf("| %s | %d | %s | %.2f s | %.2f s |\n", r.name, n, sums, median.Seconds(),
		worst.Seconds())
}

func TestTableOf_SumsRunsOfOneFaultAndTopology(t *testing.T) {
	const rest = " lost=0 doubled=0 oversold=0 broken=0 recovery_ms=0 violations=0"
	lines := strings.Join([]string{
		"fault=b seed=1 orders=10 lost=0 doubled=0 oversold=0 broken=0 recovery_ms=1500 violations=0",
		"fault=a seed=1 orders=10 lost=1 doubled=2 oversold=3 broken=0 recovery_ms=20 violations=4",
		"fault=b seed=2 orders=11 lost=0 doubled=0 oversold=0 broken=3 recovery_ms=500 violations=0",
		"fault=b seed=1 orders=7" + rest + " on=redis-cluster",
		"fault=b seed=1 orders=8" + rest + " on=redis-cluster,mysql-group",
	}, "\n")
	table := must.Get(tableOf(lines))(t)
	require.Contains(t, table, "| b (redis-cluster) | 1 | 7 |")
	require.Contains(t, table, "| b (redis-cluster, mysql-group) | 1 | 8 |")
	require.Contains(t, table, "| b | 2 | 21 | 0 | 0 | 0 | 3 | 0 | 1.00 s | 1.50 s |\n"+
		"| a | 1 | 10 | 1 | 2 | 3 | 0 | 4 | 0.02 s | 0.02 s |\n")
}

func TestTableOf_RejectsMalformedLine(t *testing.T) {
	for _, line := range []string{"fault=a orders=x\n", "nonsense\n"} {
		_, err := tableOf(line)
		require.ErrorContains(t, err, "line ")
	}
}
