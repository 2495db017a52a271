package outbox

import (
	"context"
	"iter"

	"flashsale.dev/seckill/internal/order"
)

// PendingReader reads the pending reservations of a goods in pages.
type PendingReader interface {
	// PendingPage returns one page and the cursor of the next. The walk begins with cursor 0 and
	// ends when the returned cursor is 0.
	PendingPage(
		ctx context.Context, goodsID int64, cursor uint64, count int64,
	) ([]order.Pending, uint64, error)
}

// PendingPages iterates over the pending reservations of a goods in pages of about count. It may
// return a reservation twice. After an error the iteration ends.
func PendingPages(
	ctx context.Context, reader PendingReader, goodsID, count int64,
) iter.Seq2[[]order.Pending, error] {
	return func(yield func([]order.Pending, error) bool) {
		for cursor := uint64(0); ; {
			page, next, err := reader.PendingPage(ctx, goodsID, cursor, count)
			if !yield(page, err) || err != nil || next == 0 {
				return
			}
			cursor = next
		}
	}
}
