package logging

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

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
