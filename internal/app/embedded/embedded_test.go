package embedded

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestStart_StopsRedisWithoutADatabase checks that a database that cannot be opened leaves no
// running Redis, which would keep a goroutine.
func TestStart_StopsRedisWithoutADatabase(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "seckill.db"), 0o700))
	_, err := Start(t.Context(), dir, 0, slog.New(slog.DiscardHandler))
	require.Error(t, err)
}
