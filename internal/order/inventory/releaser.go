package inventory

import (
	"context"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/workers"
)

// StockReleaser applies stock moves to Redis: at once if it can, and every second those that
// failed. The row in MySQL stays unmarked until Redis has applied it. Its id makes a repeated
// application harmless. Any number of processes may run one.
type StockReleaser struct{ Stores }

const (
	// releaseAfter is the age of moves that Run applies. The process that made a younger move
	// applies it.
	releaseAfter    = time.Second
	releaseInterval = time.Second
	releaseChunk    = 500
)

// Release applies moves now. It logs a failure and returns no error, because Run repeats the move.
func (s Stores) Release(ctx context.Context, moves []order.StockMove) {
	byGoods := make(map[int64][]order.StockMove)
	for _, m := range moves {
		byGoods[m.GoodsID] = append(byGoods[m.GoodsID], m)
	}
	for goodsID, some := range byGoods {
		if err := s.releaseGoods(ctx, goodsID, some); err != nil {
			s.Log.WarnContext(ctx, "stock moves can't be released, trying again", "goods_id",
				goodsID, "moves", len(some), "err", err)
		}
	}
}

// releaseGoods applies moves of one goods and marks the applied ones in MySQL.
func (s Stores) releaseGoods(ctx context.Context, goodsID int64, moves []order.StockMove) error {
	for chunk := range slices.Chunk(moves, releaseChunk) {
		results, err := s.Redis.Release(ctx, goodsID, chunk)
		if err != nil {
			return err
		}
		var done []string
		for i, result := range results {
			if result.Done() {
				done = append(done, chunk[i].ID)
			}
		}
		if len(done) == 0 {
			continue
		}
		if err := s.Store.MarkReleased(ctx, goodsID, done, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// Run releases what is due every second until ctx ends.
func (r *StockReleaser) Run(ctx context.Context) error {
	return workers.Every(ctx, releaseInterval, r.runOnce)
}

func (r *StockReleaser) runOnce(ctx context.Context) {
	moves, err := r.Store.UnreleasedMoves(ctx, time.Now().Add(-releaseAfter), releaseChunk)
	if err != nil {
		r.Log.WarnContext(ctx, "stock moves can't be listed, trying again", "err", err)
		return
	}
	r.Release(ctx, moves)
}
