package retention

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/workers"
)

const (
	// keepWork is how long finished work is kept, for questions about it.
	keepWork = 7 * 24 * time.Hour
	// keepTombstones counts from a sale's retirement. No message can be as late.
	keepTombstones = 30 * 24 * time.Hour
	// keepRevokedKeys is how long lists show a revoked API key.
	keepRevokedKeys = 90 * 24 * time.Hour

	interval = time.Minute
	batch    = 500
)

// Kind is a kind of rows.
type Kind string

// The kinds of rows that the Worker deletes, and from when their age counts.
const (
	Keys       Kind = "keys"       // idempotency keys, from when they were made
	Moves      Kind = "moves"      // stock moves, from their release
	Cuts       Kind = "cuts"       // stock cuts that have ended, from when they were made
	Barriers   Kind = "barriers"   // from when the consumer reached them
	Events     Kind = "events"     // from when they happened; longer while a webhook lacks them
	Deliveries Kind = "deliveries" // of webhooks, from their end
	APIKeys    Kind = "API keys"   // from their revocation
	Tombstones Kind = "tombstones" // that no message has filled, from their sale's retirement
)

// keepTimes returns how long the rows of each kind are kept.
func keepTimes() map[Kind]time.Duration {
	return map[Kind]time.Duration{
		Keys: salechange.IdempotencyTTL, Moves: keepWork, Cuts: keepWork, Barriers: keepWork,
		Events: keepWork, Deliveries: keepWork, APIKeys: keepRevokedKeys,
		Tombstones: keepTombstones,
	}
}

// Store deletes old rows from MySQL, at most limit in a call, and returns how many it has found.
type Store interface {
	order.Clock // dates the rows
	// Forget deletes rows of a kind, except tombstones, whose age counts from before a moment.
	Forget(ctx context.Context, kind Kind, before time.Time, limit int) (int, error)
	// ForgetTombstones deletes tombstones of the next limit sales after a goods id that were
	// retired before a moment. It returns also the last of these sales, or 0 if there was none.
	ForgetTombstones(
		ctx context.Context, before time.Time, above int64, limit int,
	) (found int, last int64, err error)
}

// Worker deletes old rows.
type Worker struct {
	Store Store
	Log   *slog.Logger

	above int64 // the last sale whose tombstones are deleted; 0: begin with the first
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	return workers.Every(ctx, interval, w.runOnce)
}

// runOnce deletes everything that is old by now. The kinds take turns, so that a large backlog of
// one does not delay the others. A kind that fails waits for the next round.
func (w *Worker) runOnce(ctx context.Context) {
	now, err := w.Store.Now(ctx)
	if err != nil {
		workers.Warn(ctx, w.Log, "cannot delete old rows, retrying", err)
		return
	}
	kinds := keepTimes()
	for len(kinds) > 0 && ctx.Err() == nil {
		for kind, keep := range kinds {
			found, err := w.forget(ctx, kind, now.Add(-keep))
			workers.Warn(ctx, w.Log, "cannot delete old rows, retrying", err, "kind", kind)
			if err != nil || found < batch {
				delete(kinds, kind)
			}
		}
	}
}

// forget deletes a batch of a kind. It serves the tombstones of the next sales, so that a round
// does not read every sale ever retired.
func (w *Worker) forget(ctx context.Context, kind Kind, before time.Time) (int, error) {
	if kind != Tombstones {
		return w.Store.Forget(ctx, kind, before, batch)
	}
	found, last, err := w.Store.ForgetTombstones(ctx, before, w.above, batch)
	if err == nil && found < batch {
		w.above = last
	}
	return found, err
}
