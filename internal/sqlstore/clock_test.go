package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestNow_IsTheServersTime opens stores whose sessions have a clock of their own, an hour from this
// host's.
func TestNow_IsTheServersTime(t *testing.T) {
	t.Parallel()
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		for _, off := range []time.Duration{-time.Hour, time.Hour} {
			at := time.Now().Add(off)
			sign := "?"
			if strings.Contains(dsn, sign) {
				sign = "&"
			}
			h := openFixture(t, fmt.Sprintf("%s%stimestamp=%d", dsn, sign, at.Unix()), "")
			first := must.Get(h.Now(t.Context()))(t)
			require.WithinDuration(t, at, first, 30*time.Minute)
			require.Equal(t, time.UTC, first.Location())
			require.False(t, must.Get(h.Now(t.Context()))(t).Before(first))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := openFixture(t, dsn, "").Now(gone)
		require.ErrorIs(t, err, context.Canceled, "an unread clock is no clock")
	})
}
