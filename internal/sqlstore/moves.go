package sqlstore

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
)

// UnreleasedAfter returns the next goods after the given one that has moves not marked as released;
// 0 if there is none. It counts moves that were made at madeBefore or earlier, or before the
// server's clock was set back. It reads one row, however many moves a goods has.
func (s *Store) UnreleasedAfter(
	ctx context.Context, goodsID int64, madeBefore time.Time,
) (int64, error) {
	var next []int64
	q := s.read(ctx).Model(&moveRow{}).Where("given_at IS NULL AND goods_id > ?", goodsID)
	err := notLater(q, "made_at", madeBefore, order.ReturnAfter).
		Order("goods_id").Limit(1).Pluck("goods_id", &next).Error
	if err != nil || len(next) == 0 {
		return 0, wrapError("find a goods with unreleased moves", err)
	}
	return next[0], nil
}

// UnreleasedMoves lists at most limit stock moves of a goods that were made at madeBefore or
// earlier, or before the server's clock was set back. They are not marked as released; the oldest
// is first. Their writers release them at once; older ones belong to a process that died.
func (s *Store) UnreleasedMoves(
	ctx context.Context, goodsID int64, madeBefore time.Time, limit int,
) ([]order.StockMove, error) {
	q := notLater(s.read(ctx).Where("given_at IS NULL AND goods_id = ?", goodsID), "made_at",
		madeBefore, order.ReturnAfter)
	return list("list unreleased moves", q.Order("made_at, id").Limit(limit), moveRow.move)
}

// MarkReleased records that Redis has applied these moves of a goods. Repeats are harmless; the
// first time counts.
func (s *Store) MarkReleased(
	ctx context.Context, goodsID int64, ids []string, now time.Time,
) error {
	return s.inTx(ctx, "mark moves as released", func(tx *gorm.DB) error {
		return markReleased(tx, goodsID, ids, now)
	})
}

func markReleased(tx *gorm.DB, goodsID int64, ids []string, now time.Time) error {
	// The condition on given_at keeps the time of the first mark.
	for part := range slices.Chunk(ids, chunkOf(tx)) {
		err := tx.Exec(`UPDATE stock_moves SET given_at = ?
			WHERE goods_id = ? AND id IN ? AND given_at IS NULL`,
			now.UnixMilli(), goodsID, part).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// ReleaseLocked locks those of a goods' moves that are not marked as released, passes them to
// apply, and marks those that apply returns. RestoreOrder deletes a move in a transaction of its
// own. The lock makes one of the two wait until the other has committed.
func (s *Store) ReleaseLocked(
	ctx context.Context, goodsID int64, ids []string, now time.Time,
	apply func(moves []order.StockMove) (done []string, err error),
) error {
	return s.inTx(ctx, "release moves", func(tx *gorm.DB) error {
		unreleased := locked(tx).Where("given_at IS NULL")
		rows, err := findIn[moveRow](unreleased, goodsID, "id", ids)
		if err != nil || len(rows) == 0 {
			return err
		}
		done, err := apply(mapSlice(rows, moveRow.move))
		if err != nil {
			return err
		}
		return markReleased(tx, goodsID, done, now)
	})
}

// Unreleased counts a goods' unreleased moves and open cuts, and returns when the oldest was made;
// zero where there is none.
func (s *Store) Unreleased(
	ctx context.Context, goodsID int64,
) (n int, oldest time.Time, err error) {
	var found struct {
		N      int
		Oldest *int64
	}
	err = s.read(ctx).Raw(`SELECT COUNT(*) AS n, MIN(made_at) AS oldest FROM (
		SELECT made_at FROM stock_moves WHERE goods_id = ? AND given_at IS NULL
		UNION ALL SELECT made_at FROM stock_cuts WHERE goods_id = ? AND state = ?) AS waiting`,
		goodsID, goodsID, inventory.CutOpen).Scan(&found).Error
	return found.N, timeOf(found.Oldest), wrapError("find unreleased moves", err)
}
