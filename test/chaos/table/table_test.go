package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunsOfAHarmAreOneRow(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(strings.NewReader(
		"harm=b seed=1 orders=10 lost=0 doubled=0 oversold=0 recovery_ms=1500 violations=0\n"+
			"harm=a seed=1 orders=10 lost=1 doubled=2 oversold=3 recovery_ms=20 violations=4\n"+
			"harm=b seed=2 orders=11 lost=0 doubled=0 oversold=0 recovery_ms=500 violations=0\n"), &out))
	require.Contains(t, out.String(), "| b | 2 | 21 | 0 | 0 | 0 | 0 | 1.00 s | 1.50 s |\n| a | 1 | 10 | 1 | 2 | 3 | 4 | 0.02 s | 0.02 s |\n")
}

func TestALineThatIsNoRunIsAnError(t *testing.T) {
	require.Error(t, run(strings.NewReader("harm=a orders=x\n"), &strings.Builder{}))
	require.Error(t, run(strings.NewReader("nonsense\n"), &strings.Builder{}))
}
