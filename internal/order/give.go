package order

import (
	"context"
	"log/slog"
	"time"
)

// MoveStore is stock_moves in MySQL.
type MoveStore interface {
	// MovesNotGiven lists moves made before a moment that nobody has marked as given, oldest first.
	MovesNotGiven(ctx context.Context, madeBefore time.Time, limit int) ([]Move, error)
	MarkGiven(ctx context.Context, goodsID int64, ids []string, now time.Time) error
}

// Releaser gives moves of one goods to Redis, each once, by its id.
type Releaser interface {
	Release(ctx context.Context, goodsID int64, moves []Move) ([]Given, error)
}

// Giver brings to Redis what the moves in MySQL give back: at once where it can, and on its round what was missed.
// The row in MySQL is the obligation; the id in Redis makes a second giving harmless.
type Giver struct {
	store MoveStore
	redis Releaser
	now   func() time.Time
	log   *slog.Logger
}

// NewGiver makes a giver.
func NewGiver(store MoveStore, redis Releaser, log *slog.Logger) *Giver {
	return &Giver{store: store, redis: redis, now: time.Now, log: log}
}

const (
	giveAfter = time.Second // a move younger than this is being given by whoever made it
	giveEvery = time.Second
	giveChunk = 500
)

// Give gives moves now. What fails is left to the round.
func (g *Giver) Give(ctx context.Context, moves []Move) {
	byGoods := make(map[int64][]Move)
	for _, m := range moves {
		byGoods[m.GoodsID] = append(byGoods[m.GoodsID], m)
	}
	for goodsID, some := range byGoods {
		if err := g.giveGoods(ctx, goodsID, some); err != nil {
			g.log.WarnContext(ctx, "units not given back yet, trying again", "goods_id", goodsID, "moves", len(some), "err", err)
		}
	}
}

func (g *Giver) giveGoods(ctx context.Context, goodsID int64, moves []Move) error {
	for len(moves) > 0 {
		n := min(giveChunk, len(moves))
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
			if err := g.store.MarkGiven(ctx, goodsID, done, g.now()); err != nil {
				return err
			}
		}
		moves = moves[n:]
	}
	return nil
}

// Run makes the rounds until ctx ends.
func (g *Giver) Run(ctx context.Context) error { return every(ctx, giveEvery, g.runOnce) }

func (g *Giver) runOnce(ctx context.Context) {
	moves, err := g.store.MovesNotGiven(ctx, g.now().Add(-giveAfter), giveChunk)
	if err != nil {
		g.log.WarnContext(ctx, "can't look for units to give back", "err", err)
		return
	}
	g.Give(ctx, moves)
}

// every calls once at once and then at each tick until ctx ends.
func every(ctx context.Context, interval time.Duration, once func(context.Context)) error {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		once(ctx)
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}
