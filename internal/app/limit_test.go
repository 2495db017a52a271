package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewLimits_NamesTheSettingAndTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	for range 2 { // a missing file, then a bad one
		_, err := NewLimits(file, 0, nil, nil, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "SECKILL_RATELIMIT_FILE ("+file+")")
		require.NoError(t, os.WriteFile(file, []byte("rules: [{nonsense: 1}]"), 0o600))
	}
}
