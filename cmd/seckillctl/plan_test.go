package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/capacity"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestPlan_PrintsATableAndJSON(t *testing.T) {
	var text, object strings.Builder
	args := []string{"plan", "--buyers", "50000", "--units", "500"}
	require.NoError(t, run(t.Context(), args, nil, &text, io.Discard))
	require.Contains(t, text.String(), "POST /{path}/decrStock")
	require.NoError(t, run(t.Context(), append(args, "-o", "json"), nil, &object, io.Discard))
	var p capacity.Plan
	require.NoError(t, json.Unmarshal([]byte(object.String()), &p))
	i := slices.IndexFunc(p.Rows, func(r capacity.Row) bool {
		return r.Work == "POST /{path}/decrStock"
	})
	require.InDelta(t, 500, p.Rows[i].Count, 0)
}

func TestPlan_ReadsACalibrationFile(t *testing.T) {
	costs := must.Get(capacity.BuiltIn())(t)
	costs.Measured = "another machine"
	body := must.Get(json.Marshal(costs))(t)
	file := filepath.Join(t.TempDir(), "costs.json")
	require.NoError(t, os.WriteFile(file, body, 0o600))
	var text strings.Builder
	require.NoError(t,
		run(t.Context(), []string{"plan", "--calibration", file}, nil, &text, io.Discard))
	require.Contains(t, text.String(), "another machine")
}

func TestPlan_RefusesFlagsOutOfRange(t *testing.T) {
	for _, args := range [][]string{
		{"--buyers", "0"},
		{"--peak", "0"},
		{"--use", "0"},
		{"--streams", "2"},
		{"--calibration", "none.json"},
		{"--over", "0s"},
	} {
		err := run(t.Context(), append([]string{"plan"}, args...), nil, io.Discard, io.Discard)
		var exitError *exitError
		require.True(t, errors.As(err, &exitError), "%v: %v", args, err)
		require.Equal(t, codeUsage, exitError.ExitCode(), "%v", args)
	}
}
