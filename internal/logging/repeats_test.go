package logging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLogger_EqualWarningsAreCounted retries as workers do while MySQL is down. Of equal warnings
// one is written in 10 s; another cause, another sale and another request are written at once.
func TestLogger_EqualWarningsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := Logger(&b, slog.LevelInfo, "text")
		lines := func() []string {
			defer b.Reset()
			return strings.Split(strings.TrimSpace(b.String()), "\n")
		}
		err := errors.New("connection refused")
		for range 50 {
			log.Warn("retrying", "err", err)
			log.With("goods_id", 7).Warn("retrying", "err", err)
			log.WithGroup("g").Error("retrying", "err", err)
			time.Sleep(200 * time.Millisecond)
		}
		require.Len(t, lines(), 3)
		log.Warn("retrying", "err", err)
		log.Warn("retrying", "err", errors.New("reset"))
		log.With("goods_id", 8).Warn("retrying", "err", err)
		log.WarnContext(context.WithValue(t.Context(), RequestIDKey{}, "a"), "retrying", "err", err)
		log.Error("retrying", "err", err)
		written := lines()
		require.Len(t, written, 5)
		require.Contains(t, written[0], "not_logged=49")
		require.NotContains(t, strings.Join(written[1:], " "), "not_logged")
		for i := range 5 {
			log.Warn("asking", "err",
				fmt.Errorf("x509: current time 2026-11-27T18:17:0%dZ is after", i))
			log.Warn("asking", "err", fmt.Errorf("read tcp [::1]:4000%d->[::1]:3306: reset", i))
		}
		require.Len(t, lines(), 2, "times and own ports make no other cause")
		log.Info("said")
		log.Info("said")
		require.Len(t, lines(), 2, "only warnings and errors")
	})
}

// TestLogger_RemembersFewWarnings checks that distinct warnings neither fill the memory nor get
// lost.
func TestLogger_RemembersFewWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		h := newHandler(slog.NewTextHandler(&b, nil))
		log := slog.New(h)
		for i := range 3 * maxRepeats {
			log.Warn("refused", "order_sn", fmt.Sprint(i))
		}
		require.Equal(t, 3*maxRepeats, strings.Count(b.String(), "\n"))
		require.Len(t, h.written.records, maxRepeats)
		time.Sleep(repeatPause)
		log.Warn("another")
		require.Len(t, h.written.records, 1)
	})
}
