package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteTable_SumsRunsOfOneFaultAndTopology(t *testing.T) {
	const rest = " lost=0 doubled=0 oversold=0 broken=0 recovery_ms=0 violations=0"
	lines := strings.Join([]string{
		"fault=b seed=1 orders=10 lost=0 doubled=0 oversold=0 recovery_ms=1500 violations=0",
		"fault=a seed=1 orders=10 lost=1 doubled=2 oversold=3 recovery_ms=20 violations=4",
		"fault=b seed=2 orders=11 lost=0 doubled=0 oversold=0 broken=3 recovery_ms=500 violations=0",
		"fault=b seed=1 orders=7" + rest + " on=redis-cluster",
		"fault=b seed=1 orders=8" + rest + " on=redis-cluster,mysql-group",
	}, "\n")
	var out strings.Builder
	require.NoError(t, writeTable(strings.NewReader(lines), &out))
	require.Contains(t, out.String(), "| b (redis-cluster) | 1 | 7 |")
	require.Contains(t, out.String(), "| b (redis-cluster, mysql-group) | 1 | 8 |")
	require.Contains(t, out.String(), "| b | 2 | 21 | 0 | 0 | 0 | 3 | 0 | 1.00 s | 1.50 s |\n"+
		"| a | 1 | 10 | 1 | 2 | 3 | 0 | 4 | 0.02 s | 0.02 s |\n")
}

func TestWriteTable_RejectsMalformedLine(t *testing.T) {
	for _, line := range []string{"fault=a orders=x\n", "nonsense\n"} {
		require.Error(t, writeTable(strings.NewReader(line), &strings.Builder{}))
	}
}

// TestReport_HasEveryRecordedRun compares the table in reports/faults.md with the recorded runs.
func TestReport_HasEveryRecordedRun(t *testing.T) {
	runs, err := os.ReadFile("../../../reports/fault-runs.txt")
	require.NoError(t, err)
	doc, err := os.ReadFile("../../../reports/faults.md")
	require.NoError(t, err)
	renewed, err := replaceTable(string(doc), strings.NewReader(string(runs)))
	require.NoError(t, err)
	require.Equal(t, renewed, string(doc),
		"go run ./test/faults/table -doc reports/faults.md <reports/fault-runs.txt")
}

func TestReplaceTable_RejectsDocumentWithoutTable(t *testing.T) {
	_, err := replaceTable("# Reliability\n", strings.NewReader(""))
	require.Error(t, err)
}
