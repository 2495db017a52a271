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
		for chunk := range slices.Chunk(some, releaseChunk) {
			if !s.releaseGoods(ctx, goodsID, chunk) {
				break
			}
		}
	}
}

// releaseGoods applies moves of one goods, marks the applied ones in MySQL, and reports whether
// these are all. It logs a failure.
func (s Stores) releaseGoods(ctx context.Context, goodsID int64, moves []order.StockMove) bool {
	done, err := s.applyAll(ctx, goodsID, moves)
	if err != nil {
		s.Log.WarnContext(ctx, "cannot release stock moves, retrying", "goods_id", goodsID,
			"moves", len(moves), "err", err)
	}
	return err == nil && done == len(moves)
}

// applyAll applies moves of one goods and returns how many it has marked. A requeue may delete the
// move of a failed order at the same time, and its commit may take a minute. Such moves are
// therefore locked while Redis applies them. Otherwise Redis could return units that MySQL has
// sold.
func (s Stores) applyAll(
	ctx context.Context, goodsID int64, moves []order.StockMove,
) (marked int, err error) {
	now, err := s.Store.Now(ctx)
	if err != nil {
		return 0, err
	}
	var final []order.StockMove
	var deletable []string
	for _, m := range moves {
		if m.Kind == order.MoveFail {
			deletable = append(deletable, m.ID)
		} else {
			final = append(final, m)
		}
	}
	if len(deletable) > 0 {
		apply := func(moves []order.StockMove) (done []string, err error) {
			done, err = s.apply(ctx, goodsID, moves)
			marked = len(done)
			return done, err
		}
		if err := s.Store.ReleaseLocked(ctx, goodsID, deletable, now, apply); err != nil {
			return 0, err
		}
	}
	if len(final) == 0 {
		return marked, nil
	}
	done, err := s.apply(ctx, goodsID, final)
	if len(done) > 0 {
		err = s.Store.MarkReleased(ctx, goodsID, done, now)
	}
	return marked + len(done), err
}

// apply has Redis apply moves, and returns the ids of those that need no retry.
func (s Stores) apply(
	ctx context.Context, goodsID int64, moves []order.StockMove,
) (done []string, err error) {
	results, err := s.Redis.Release(ctx, goodsID, moves)
	for i, result := range results {
		if result.Done() {
			done = append(done, moves[i].ID)
		}
	}
	return done, err
}

// Run releases what is due every second until ctx ends.
func (r *StockReleaser) Run(ctx context.Context) error {
	return workers.Every(ctx, releaseInterval, r.runOnce)
}

// runOnce serves every sale with due moves. A sale that cannot be reached starves no other.
func (r *StockReleaser) runOnce(ctx context.Context) {
	now, err := r.Store.Now(ctx)
	before, due := now.Add(-releaseAfter), []int64(nil)
	if err == nil {
		due, err = r.dueGoods(ctx, before)
	}
	workers.Warn(ctx, r.Log, "cannot list stock moves, retrying", err)
	workers.Each(ctx, due, func(ctx context.Context, goodsID int64) {
		err := r.releaseDue(ctx, goodsID, before)
		workers.Warn(ctx, r.Log, "cannot list stock moves, retrying", err,
			"goods_id", goodsID)
	})
}

// releaseDue releases the due moves of a goods until none is left or Redis does not apply all.
func (r *StockReleaser) releaseDue(ctx context.Context, goodsID int64, before time.Time) error {
	for {
		moves, err := r.Store.UnreleasedMoves(ctx, goodsID, before, releaseChunk)
		if err != nil || len(moves) == 0 || !r.releaseGoods(ctx, goodsID, moves) {
			return err
		}
	}
}

// dueGoods lists the goods with moves made before a moment.
func (r *StockReleaser) dueGoods(ctx context.Context, before time.Time) (due []int64, err error) {
	for goodsID := int64(0); ; due = append(due, goodsID) {
		goodsID, err = r.Store.UnreleasedAfter(ctx, goodsID, before)
		if err != nil || goodsID == 0 {
			return due, err
		}
	}
}
