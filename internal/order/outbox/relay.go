package outbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/workers"
)

// Metrics hears of what the relay publishes.
type Metrics interface {
	// Relayed hears how many outbox entries were published that their API left behind.
	Relayed(entries int)
}

// Store is what a goods has reserved and the queue has not confirmed, and all of it that is pending.
type Store interface {
	// Unconfirmed reads entries at least so old by Redis' clock, oldest first.
	Unconfirmed(ctx context.Context, goodsID int64, age time.Duration, count int64) ([]Entry, error)
	Confirmed(ctx context.Context, goodsID int64, ids ...string) error
	// PendingPage walks from cursor 0 until the cursor returned is 0 again.
	PendingPage(ctx context.Context, goodsID int64, cursor uint64, count int64) ([]order.Pending, uint64, error)
}

// Relay publishes what the API could not: it died between taking and publishing, or the queue was away.
// Several may run; what two of them publish twice is written once.
type Relay struct {
	live      *livesales.List
	Outbox    Store
	publisher order.Publisher
	deadline  time.Duration
	log       *slog.Logger
	observer  Metrics
}

const (
	relayAfter = time.Second // what is younger is still its API's
	relayEvery = 250 * time.Millisecond
	RelayChunk = 64 // entries read and sent at a time
)

// NewRelay makes a relay; publishDeadline bounds each message.
func NewRelay(live *livesales.List, outbox Store, publisher order.Publisher, observer Metrics, publishDeadline time.Duration, log *slog.Logger) *Relay {
	return &Relay{live: live, Outbox: outbox, publisher: publisher, deadline: publishDeadline, log: log, observer: observer}
}

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) error { return workers.Every(ctx, relayEvery, r.runOnce) }

func (r *Relay) runOnce(ctx context.Context) {
	for _, sale := range r.live.Sales() {
		n, err := r.Drain(ctx, sale.GoodsID, relayAfter)
		if n > 0 {
			r.log.InfoContext(ctx, "relayed from the outbox", "goods_id", sale.GoodsID, "entries", n)
		}
		if err != nil && !errors.Is(err, order.ErrQueueDown) && ctx.Err() == nil {
			r.log.WarnContext(ctx, "relay goes on later", "goods_id", sale.GoodsID, "err", err)
		}
	}
}

// Drain publishes the outbox entries of a goods that are at least so old, until none is left, and returns how many.
func (r *Relay) Drain(ctx context.Context, goodsID int64, age time.Duration) (int, error) {
	sent := 0
	for {
		entries, err := r.Outbox.Unconfirmed(ctx, goodsID, age, RelayChunk)
		if err != nil || len(entries) == 0 {
			return sent, err
		}
		if err := r.send(ctx, goodsID, entries); err != nil {
			return sent, err
		}
		sent += len(entries)
		if r.observer != nil {
			r.observer.Relayed(len(entries))
		}
	}
}

// send publishes entries together and removes those that the queue keeps.
func (r *Relay) send(ctx context.Context, goodsID int64, entries []Entry) error {
	ctx, cancel := context.WithTimeout(ctx, r.deadline)
	defer cancel()
	var g errgroup.Group
	for _, e := range entries {
		g.Go(func() error {
			if err := r.publisher.Publish(ctx, goodsID, order.EncodeOrders(goodsID, e.Entries)); err != nil {
				return err
			}
			return r.Outbox.Confirmed(ctx, goodsID, e.ID)
		})
	}
	return g.Wait()
}

// Feed publishes all that is pending of a goods and at least so old, whether the queue ever had it or not: for a queue
// that lost what it had confirmed, and before an epoch ends. What was there is recognised and written once.
func (r *Relay) Republish(ctx context.Context, goodsID int64, olderThan time.Time) (int, error) {
	fed := 0
	for cursor := uint64(0); ; {
		page, next, err := r.Outbox.PendingPage(ctx, goodsID, cursor, RelayChunk)
		if err != nil {
			return fed, err
		}
		var entries [][]byte
		for _, p := range page {
			if p.At.Before(olderThan) {
				entries = append(entries, p.Entry)
			}
		}
		if err := r.PublishEntries(ctx, goodsID, entries); err != nil {
			return fed, err
		}
		if fed += len(entries); next == 0 {
			return fed, nil
		}
		cursor = next
	}
}

func (r *Relay) PublishEntries(ctx context.Context, goodsID int64, entries [][]byte) error {
	if len(entries) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.deadline)
	defer cancel()
	return r.publisher.Publish(ctx, goodsID, order.EncodeOrders(goodsID, order.JoinEntries(entries)))
}
