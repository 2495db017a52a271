package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// updateFlag rewrites the plans of reports/plans.md. `make calibrate` sets it, because new costs
// change the plans.
var updateFlag = flag.Bool("plans.update", false, "rewrite the plans of reports/plans.md")

// planPrompt is the prefix of each command in reports/plans.md that the test runs.
const planPrompt = "$ seckillctl plan"

func TestPlan_MatchesTheReport(t *testing.T) {
	file := filepath.Join("..", "..", "reports", "plans.md")
	before := must.Get(os.ReadFile(file))(t)
	blocks := strings.Split(string(before), "```console\n")
	plans := 0
	for i, block := range blocks {
		shown, rest, found := strings.Cut(block, "```\n")
		if i == 0 || !found || !strings.HasPrefix(shown, planPrompt) {
			continue
		}
		plans++
		command, _, _ := strings.Cut(shown, "\n")
		now := command + "\n" + printed(t, strings.Fields(command)[2:])
		if !*updateFlag {
			require.Equal(t, now, shown,
				"run make calibrate, or go test ./cmd/seckillctl -run Plan -plans.update")
		}
		blocks[i] = now + "```\n" + rest
	}
	require.Equal(t, 2, plans)
	if *updateFlag {
		after := strings.Join(blocks, "```console\n")
		require.NoError(t, os.WriteFile(file, []byte(after), 0o644))
	}
}

func printed(t *testing.T, args []string) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(t.Context(), args, nil, &out, io.Discard))
	lines := strings.Split(out.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}
