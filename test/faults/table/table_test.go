package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

func TestTableOf_SumsRunsOfOneFaultAndTopology(t *testing.T) {
	const rest = " lost=0 doubled=0 oversold=0 broken=0 recovery_ms=0 violations=0"
	lines := strings.Join([]string{
		"fault=b seed=1 orders=10 lost=0 doubled=0 oversold=0 broken=0 recovery_ms=1500 violations=0",
		"fault=a seed=1 orders=10 lost=1 doubled=2 oversold=3 broken=0 recovery_ms=20 violations=4",
		"fault=b seed=2 orders=11 lost=0 doubled=0 oversold=0 broken=3 recovery_ms=500 violations=0",
		"fault=b seed=1 orders=7" + rest + " on=redis-cluster",
		"fault=b seed=1 orders=8" + rest + " on=redis-cluster,mysql-group",
	}, "\n")
	table := must.Get(tableOf(strings.NewReader(lines)))(t)
	require.Contains(t, table, "| b (redis-cluster) | 1 | 7 |")
	require.Contains(t, table, "| b (redis-cluster, mysql-group) | 1 | 8 |")
	require.Contains(t, table, "| b | 2 | 21 | 0 | 0 | 0 | 3 | 0 | 1.00 s | 1.50 s |\n"+
		"| a | 1 | 10 | 1 | 2 | 3 | 0 | 4 | 0.02 s | 0.02 s |\n")
}

func TestReplaceTable_RejectsMalformedInput(t *testing.T) {
	for doc, line := range map[string]string{
		tableBegin + tableEnd:               "fault=a orders=x\n",
		"\n" + tableBegin + "\n" + tableEnd: "nonsense\n",
		"# Reliability\n":                   "",
	} {
		_, err := replaceTable(doc, strings.NewReader(line))
		require.Error(t, err)
	}
}

// TestReport_HasEveryRecordedRun compares the table in reports/faults.md with the recorded runs.
func TestReport_HasEveryRecordedRun(t *testing.T) {
	runs := must.Get(os.ReadFile("../../../reports/fault-runs.txt"))(t)
	doc := string(must.Get(os.ReadFile("../../../reports/faults.md"))(t))
	require.Equal(t, must.Get(replaceTable(doc, strings.NewReader(string(runs))))(t), doc,
		"go run ./test/faults/table <reports/fault-runs.txt")
}
