package embedded

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestStart_ClosesTheDatabaseWithoutRedis checks that a Redis that does not start leaves no open
// database, which would keep a goroutine.
func TestStart_ClosesTheDatabaseWithoutRedis(t *testing.T) {
	defer goleak.VerifyNone(t)
	errRedis := errors.New("no port is free")
	_, err := start(t.Context(), t.TempDir(), 0, slog.New(slog.DiscardHandler),
		func() (*miniredis.Miniredis, error) { return nil, errRedis })
	require.ErrorIs(t, err, errRedis)
}
