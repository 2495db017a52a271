package query

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
)

// countingStore has no orders.
type countingStore struct {
	Store
	reads map[string]int
}

// StatusOf implements Store. It counts the reads of each number.
func (c countingStore) StatusOf(
	_ context.Context, _ int64, sns []string,
) (map[string]order.Status, error) {
	for _, sn := range sns {
		c.reads[sn]++
	}
	return nil, nil
}

// TestNotifier_ReadsCreatedOrdersInFewRounds checks that idle subscriptions of created orders cost
// less than those whose buyers wait. An order that has both kinds is read in each round.
func TestNotifier_ReadsCreatedOrdersInFewRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := countingStore{reads: map[string]int{}}
		n := NewNotifier(store, nil, slog.New(slog.DiscardHandler))
		for sn, known := range map[string][]order.Status{
			"created": {order.Created}, "queued": {order.Queued},
			"both": {order.Created, order.Queued},
		} {
			for _, status := range known {
				n.Subscribe(1, sn, status)
			}
		}
		const rounds = 4 * roundsOfCreated
		ctx, cancel := context.WithTimeout(t.Context(), rounds*pollInterval-pollInterval/2)
		defer cancel()
		require.NoError(t, n.Run(ctx))
		require.Equal(t,
			map[string]int{"created": rounds / roundsOfCreated, "queued": rounds, "both": rounds},
			store.reads)
	})
}
