package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// updateFlag has the document's plans written anew: make calibrate does it, for a new calibration changes them.
var updateFlag = flag.Bool("scaling.update", false, "write the plans of docs/how-to/scale.md anew")

// planPrompt begins each command of docs/how-to/scale.md that is run here.
const planPrompt = "$ seckillctl plan"

// docs/how-to/scale.md shows what the command prints, to the letter.
func TestScalingTellsWhatPlanPrints(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "scaling.md")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
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
			require.Equal(t, now, shown, "make calibrate renews the document; or go test ./cmd/seckillctl -run Scaling -scaling.update")
		}
		blocks[i] = now + "```\n" + rest
	}
	require.GreaterOrEqual(t, plans, 3)
	if *updateFlag {
		after := strings.Join(blocks, "```console\n")
		require.NoError(t, os.WriteFile(file, []byte(after), 0o644)) //nolint:gosec // a document that everybody may read
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
