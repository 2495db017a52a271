package inventory

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
)

// backlog is both servers of a sale with stock moves to release.
type backlog struct {
	Store
	Redis
	moves []order.StockMove
	calls []int // the moves of each call to Redis
}

func (*backlog) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (b *backlog) UnreleasedAfter(_ context.Context, goodsID int64, _ time.Time) (int64, error) {
	return 1 - goodsID, nil
}

func (b *backlog) UnreleasedMoves(
	_ context.Context, _ int64, _ time.Time, limit int,
) ([]order.StockMove, error) {
	return slices.Clone(b.moves[:min(limit, len(b.moves))]), nil
}

func (b *backlog) MarkReleased(_ context.Context, _ int64, ids []string, _ time.Time) error {
	b.moves = slices.DeleteFunc(b.moves, func(m order.StockMove) bool {
		return slices.Contains(ids, m.ID)
	})
	return nil
}

func (b *backlog) ReleaseLocked(
	ctx context.Context, goodsID int64, ids []string, now time.Time,
	apply func([]order.StockMove) ([]string, error),
) error {
	done, err := apply(slices.DeleteFunc(slices.Clone(b.moves), func(m order.StockMove) bool {
		return !slices.Contains(ids, m.ID)
	}))
	if err != nil {
		return err
	}
	return b.MarkReleased(ctx, goodsID, done, now)
}

func (b *backlog) Release(
	_ context.Context, _ int64, moves []order.StockMove,
) ([]order.MoveResult, error) {
	b.calls = append(b.calls, len(moves))
	return slices.Repeat([]order.MoveResult{order.MoveApplied}, len(moves)), nil
}

// TestReleaser_RoundAppliesWholeBacklog checks that a round applies more moves of a sale than one
// call may have, of failed orders and others. So does the process that made them.
func TestReleaser_RoundAppliesWholeBacklog(t *testing.T) {
	type moves []order.StockMove
	for name, release := range map[string]func(*StockReleaser, moves){
		"round":   func(r *StockReleaser, _ moves) { r.runOnce(t.Context()) },
		"at once": func(r *StockReleaser, made moves) { r.Release(t.Context(), made) },
	} {
		t.Run(name, func(t *testing.T) {
			b := &backlog{}
			for n := range 2*releaseChunk + 1 {
				kind := []order.MoveKind{order.MoveFail, order.MoveDelta}[n%2]
				b.moves = append(b.moves,
					order.StockMove{ID: strconv.Itoa(n), GoodsID: 1, Kind: kind})
			}
			release(&StockReleaser{Stores{Store: b, Redis: b, Log: slog.New(slog.DiscardHandler)}},
				slices.Clone(b.moves))
			require.Empty(t, b.moves)
			require.Equal(t, []int{250, 250, 250, 250, 1}, b.calls)
		})
	}
}
