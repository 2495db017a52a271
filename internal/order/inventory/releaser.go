package inventory

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/workers"
)

// MoveStore is stock_moves in MySQL.
type MoveStore interface {
	// MovesNotGiven lists moves made before a moment that nobody has marked as given, oldest first.
	UnreleasedMoves(ctx context.Context, madeBefore time.Time, limit int) ([]order.StockMove, error)
	MarkReleased(ctx context.Context, goodsID int64, ids []string, now time.Time) error
}

// MoveApplier gives moves of one goods to Redis, each once, by its id.
type MoveApplier interface {
	Release(ctx context.Context, goodsID int64, moves []order.StockMove) ([]order.MoveResult, error)
}

// StockReleaser brings to Redis what the moves in MySQL give back: at once where it can, and on its round what was missed.
// The row in MySQL is the obligation; the id in Redis makes a second giving harmless.
type StockReleaser struct {
	store MoveStore
	redis MoveApplier
	now   func() time.Time
	log   *slog.Logger
}

// NewStockReleaser makes a giver.
func NewStockReleaser(store MoveStore, redis MoveApplier, log *slog.Logger) *StockReleaser {
	return &StockReleaser{store: store, redis: redis, now: time.Now, log: log}
}

const (
	releaseAfter    = time.Second // a move younger than this is being given by whoever made it
	releaseInterval = time.Second
	releaseChunk    = 500
)

// Give gives moves now. What fails is left to the round.
func (g *StockReleaser) Release(ctx context.Context, moves []order.StockMove) {
	byGoods := make(map[int64][]order.StockMove)
	for _, m := range moves {
		byGoods[m.GoodsID] = append(byGoods[m.GoodsID], m)
	}
	for goodsID, some := range byGoods {
		if err := g.releaseGoods(ctx, goodsID, some); err != nil {
			g.log.WarnContext(ctx, "units not given back yet, trying again", "goods_id", goodsID, "moves", len(some), "err", err)
		}
	}
}

func (g *StockReleaser) releaseGoods(ctx context.Context, goodsID int64, moves []order.StockMove) error {
	for len(moves) > 0 {
		n := min(releaseChunk, len(moves))
		given, err := g.redis.Release(ctx, goodsID, moves[:n])
		if err != nil {
			return err
		}
		var done []string
		for i, was := range given {
			if was.Done() {
				done = append(done, moves[i].ID)
			}
		}
		if len(done) > 0 {
			if err := g.store.MarkReleased(ctx, goodsID, done, g.now()); err != nil {
				return err
			}
		}
		moves = moves[n:]
	}
	return nil
}

// Run makes the rounds until ctx ends.
func (g *StockReleaser) Run(ctx context.Context) error {
	return workers.Every(ctx, releaseInterval, g.runOnce)
}

func (g *StockReleaser) runOnce(ctx context.Context) {
	moves, err := g.store.UnreleasedMoves(ctx, g.now().Add(-releaseAfter), releaseChunk)
	if err != nil {
		g.log.WarnContext(ctx, "can't look for units to give back", "err", err)
		return
	}
	g.Release(ctx, moves)
}
