package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestReadReplica_ClockSetBackEndsThePause checks that lists use the replica again on a host whose
// clock was set back by an hour after the replica had failed.
func TestReadReplica_ClockSetBackEndsThePause(t *testing.T) {
	t.Parallel()
	h, other := newFixture(t, sqliteFile(t)), newFixture(t, sqliteFile(t))
	h.replica = &replica{db: other.db, pool: other.pool}
	h.exposed(10, 5)
	for until, found := range map[time.Duration]int{
		-time.Second: 0, replicaBackoff: 1, time.Hour: 0,
	} {
		h.replica.skipUntil.Store(time.Now().Add(until).UnixNano())
		require.Len(t, must.Get(h.ExposedSales(t.Context(), 0, 10))(t), found, until)
	}
}
