package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestNewLimits_NamesTheSettingAndTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	for range 2 { // a missing file, then a bad one
		_, err := NewLimits(file, 0, nil, nil, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "SECKILL_RATELIMIT_FILE ("+file+")")
		require.NoError(t, os.WriteFile(file, []byte("rules: [{nonsense: 1}]"), 0o600))
	}
}

// TestAuditLimiters_RecordTheChangeOfACallerWhoHasLeft checks that an operator who disconnects
// after the change does not keep it out of the audit log.
func TestAuditLimiters_RecordTheChangeOfACallerWhoHasLeft(t *testing.T) {
	store := must.Get(sqlstore.Open(t.Context(), "sqlite:"+t.TempDir()+"/s.db", ""))(t)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Migrate(t.Context()))
	gone, leave := context.WithCancel(t.Context())
	leave()
	auditLimiters(store, slog.New(slog.DiscardHandler))(gone, "session", "*", ratelimit.Limit{},
		&ratelimit.Limit{PermitsPerSecond: 7})
	entries := must.Get(store.AuditTrail(t.Context(), salechange.AuditFilter{}, "", 2))(t)
	require.Len(t, entries, 1)
	require.Equal(t, salechange.ActSetLimiter, entries[0].Action)
}
