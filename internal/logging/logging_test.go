package logging

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLogger_RecordsContainTheRequestID(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var b bytes.Buffer
		log := Logger(&b, slog.LevelInfo, format).With("part", "x")
		log.DebugContext(t.Context(), "too low")
		log.InfoContext(context.WithValue(t.Context(), RequestIDKey{}, "abc"), "said")
		require.Contains(t, b.String(), "abc", format)
		require.Contains(t, b.String(), "request_id", format)
		require.NotContains(t, b.String(), "too low", format)
	}
	require.Empty(t, RequestID(context.Background()))
}

// TestLogger_DurationsHaveUnits checks both formats: a handler of JSON writes nanoseconds.
func TestLogger_DurationsHaveUnits(t *testing.T) {
	for format, want := range map[string]string{"json": `"in":"1.5s"`, "text": "in=1.5s"} {
		var b bytes.Buffer
		Logger(&b, slog.LevelInfo, format).Info("retrying", "in", 1500*time.Millisecond)
		require.Contains(t, b.String(), want)
	}
}
