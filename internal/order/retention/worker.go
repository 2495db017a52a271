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
	// KeepWork is how long finished work is kept, for questions about it.
	KeepWork = 7 * 24 * time.Hour
	// KeepTombstones counts from a sale's retirement. No message can be as late.
	KeepTombstones = 30 * 24 * time.Hour
	// KeepRevokedKeys is how long lists show a revoked API key.
	KeepRevokedKeys = 90 * 24 * time.Hour

	interval = time.Minute
	batch    = 500
)

// Store deletes old rows from MySQL, at most limit in a call, and returns how many it has found.
type Store interface {
	order.Clock // dates the rows
	// ForgetKeys deletes idempotency keys made before a moment.
	ForgetKeys(ctx context.Context, before time.Time, limit int) (int, error)
	// ForgetMoves deletes stock moves that were released before a moment.
	ForgetMoves(ctx context.Context, before time.Time, limit int) (int, error)
	// ForgetCuts deletes stock cuts that were made before a moment and have ended.
	ForgetCuts(ctx context.Context, before time.Time, limit int) (int, error)
	// ForgetBarriers deletes barriers that were reached before a moment.
	ForgetBarriers(ctx context.Context, before time.Time, limit int) (int, error)
	// ForgetEvents deletes events that happened before a moment and that every webhook has, and
	// those that happened long before it.
	ForgetEvents(ctx context.Context, before time.Time, limit int) (int, error)
	// ForgetDeliveries deletes webhook deliveries that ended before a moment.
	ForgetDeliveries(ctx context.Context, before time.Time, limit int) (int, error)
	// ForgetAPIKeys deletes API keys that were revoked before a moment.
	ForgetAPIKeys(ctx context.Context, before time.Time, limit int) (int, error)
	// ForgetTombstones deletes tombstones without a message, of the next limit sales after a goods
	// id that were retired before a moment. It returns also the last of these sales, or 0 if there
	// was none.
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
	work := now.Add(-KeepWork)
	kinds := map[string]func() (int, error){
		"keys": func() (int, error) {
			return w.Store.ForgetKeys(ctx, now.Add(-salechange.IdempotencyTTL), batch)
		},
		"moves":      func() (int, error) { return w.Store.ForgetMoves(ctx, work, batch) },
		"cuts":       func() (int, error) { return w.Store.ForgetCuts(ctx, work, batch) },
		"barriers":   func() (int, error) { return w.Store.ForgetBarriers(ctx, work, batch) },
		"events":     func() (int, error) { return w.Store.ForgetEvents(ctx, work, batch) },
		"deliveries": func() (int, error) { return w.Store.ForgetDeliveries(ctx, work, batch) },
		"API keys": func() (int, error) {
			return w.Store.ForgetAPIKeys(ctx, now.Add(-KeepRevokedKeys), batch)
		},
		"tombstones": func() (int, error) { return w.forgetTombstones(ctx, now) },
	}
	for len(kinds) > 0 && ctx.Err() == nil {
		for kind, forget := range kinds {
			found, err := forget()
			workers.Warn(ctx, w.Log, "cannot delete old rows, retrying", err, "kind", kind)
			if err != nil || found < batch {
				delete(kinds, kind)
			}
		}
	}
}

// forgetTombstones serves the next sales, so that a round does not read every sale ever retired.
func (w *Worker) forgetTombstones(ctx context.Context, now time.Time) (int, error) {
	found, last, err := w.Store.ForgetTombstones(ctx, now.Add(-KeepTombstones), w.above, batch)
	if err == nil && found < batch {
		w.above = last
	}
	return found, err
}
