package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/capacity"
)

func TestAPlanForPeopleAndForPrograms(t *testing.T) {
	var text, object strings.Builder
	require.NoError(t, run(t.Context(), []string{"plan", "--come", "1,9,2"}, nil, &text, io.Discard))
	require.Contains(t, text.String(), "given over 10s")
	args := []string{"plan", "--buyers", "50000", "--units", "500", "--shape", "at-once"}
	require.NoError(t, run(t.Context(), args, nil, &text, io.Discard))
	require.Contains(t, text.String(), "50,000 buyers for 500 units, at-once")
	require.NoError(t, run(t.Context(), append(args, "-o", "json"), nil, &object, io.Discard))
	var p capacity.Plan
	require.NoError(t, json.Unmarshal([]byte(object.String()), &p))
	require.InDelta(t, 500, p.Total(capacity.Purchases), 1)
}

func TestAPlanByOnesOwnCosts(t *testing.T) {
	costs, err := capacity.BuiltIn()
	require.NoError(t, err)
	costs.Provenance.Machine = "a machine of one's own"
	body, err := json.Marshal(costs)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "costs.json")
	require.NoError(t, os.WriteFile(file, body, 0o600))
	var text strings.Builder
	require.NoError(t, run(t.Context(), []string{"plan", "-calibration", file}, nil, &text, io.Discard))
	require.Contains(t, text.String(), "a machine of one's own")
}

func TestAPlanThatMakesNoSense(t *testing.T) {
	for _, args := range [][]string{
		{"--buyers", "0"}, {"--shape", "flat"}, {"--use", "0"}, {"--streams", "2"}, {"--calibration", "none.json"}, {"--over", "0s"},
	} {
		err := run(t.Context(), append([]string{"plan"}, args...), nil, io.Discard, io.Discard)
		var coding *coding
		require.True(t, errors.As(err, &coding), "%v: %v", args, err)
		require.Equal(t, codeUsage, coding.ExitCode(), "%v", args)
	}
}
