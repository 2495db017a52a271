package outbox

import (
	"context"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
)

// Store reads the outbox and the pending reservations in Redis.
type Store interface {
	// WithEntries returns those of the goods that have outbox entries. It leaves out goods whose
	// master does not answer, which is an error too.
	WithEntries(ctx context.Context, goodsIDs []int64) ([]int64, error)
	// Unconfirmed returns at most count entries of at least the given age by Redis' clock,
	// oldest first.
	Unconfirmed(ctx context.Context, goodsID int64, age time.Duration, count int64) ([]Entry, error)
	// Confirmed removes entries from the outbox.
	Confirmed(ctx context.Context, goodsID int64, ids ...string) error
	// PendingPages iterates over the pending reservations of a goods in pages of about count. It
	// may return a reservation twice. After an error the iteration ends.
	PendingPages(ctx context.Context, goodsID, count int64) iter.Seq2[[]order.Pending, error]
}

// chunk is the number of entries read and published at a time.
const chunk = 64

// Publisher publishes reservations that Redis holds.
type Publisher struct {
	Store   Store
	Queue   order.Publisher
	Timeout time.Duration     // of publishing one chunk
	Relayed func(entries int) // receives entries that an API left unpublished; may be nil
}

// PublishUnconfirmed publishes the outbox entries of a goods that have at least the given age, page
// by page. It ends at a page that is not full. After a step of Redis' clock all new entries count
// as old, and other sales must not wait for those of a sale that sells. It returns the number of
// published entries, also with an error.
func (p *Publisher) PublishUnconfirmed(
	ctx context.Context, goodsID int64, age time.Duration,
) (int, error) {
	published := 0
	for {
		entries, err := p.Store.Unconfirmed(ctx, goodsID, age, chunk)
		if err != nil || len(entries) == 0 {
			return published, err
		}
		if err := p.publishEntries(ctx, goodsID, entries); err != nil {
			return published, err
		}
		published += len(entries)
		if p.Relayed != nil {
			p.Relayed(len(entries))
		}
		if len(entries) < chunk {
			return published, nil
		}
	}
}

// publishEntries publishes entries concurrently. It removes each entry that the queue confirms.
func (p *Publisher) publishEntries(ctx context.Context, goodsID int64, entries []Entry) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	var g errgroup.Group
	for _, e := range entries {
		g.Go(func() error {
			body := message.EncodeOrders(goodsID, e.Entries)
			if err := p.Queue.Publish(ctx, goodsID, body); err != nil {
				return err
			}
			return p.Store.Confirmed(ctx, goodsID, e.ID)
		})
	}
	return g.Wait()
}

// PublishPending publishes all pending reservations of a goods, including those that the queue has
// confirmed. The batch writer recognises orders that are already written. It returns the number of
// published reservations, also with an error.
func (p *Publisher) PublishPending(ctx context.Context, goodsID int64) (int, error) {
	published := 0
	for page, err := range p.Store.PendingPages(ctx, goodsID, chunk) {
		if err != nil {
			return published, err
		}
		n, err := p.Publish(ctx, goodsID, page)
		if published += n; err != nil {
			return published, err
		}
	}
	return published, nil
}

// Publish publishes reservations of a goods, 64 in a message. It returns the number of published
// reservations, also with an error.
func (p *Publisher) Publish(
	ctx context.Context, goodsID int64, reservations []order.Pending,
) (int, error) {
	published := 0
	for some := range slices.Chunk(reservations, chunk) {
		if err := p.publishMessage(ctx, goodsID, some); err != nil {
			return published, err
		}
		published += len(some)
	}
	return published, nil
}

// publishMessage publishes reservations as one message and waits for its confirm.
func (p *Publisher) publishMessage(
	ctx context.Context, goodsID int64, reservations []order.Pending,
) error {
	lines := make([][]byte, len(reservations))
	for i, r := range reservations {
		lines[i] = r.Entry
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	return p.Queue.Publish(ctx, goodsID, message.EncodeOrders(goodsID, message.JoinEntries(lines)))
}
