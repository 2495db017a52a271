package outbox

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

const (
	relayAfter    = time.Second // the API publishes younger entries itself
	relayInterval = 250 * time.Millisecond
)

// NewQueues reports shards whose queue is new. The zero value serves a queue in the same process,
// which loses its messages only together with Redis.
type NewQueues struct {
	Shard <-chan int // the shard of a new queue; may repeat
	// Mark records in the broker that all pending orders of a shard have been published to its
	// queue. The broker loses the mark together with the queue's messages.
	Mark   func(ctx context.Context, shard int) error
	Shards int // the number of all shards
}

// Relay publishes old outbox entries at each tick, and all pending reservations of a new queue.
type Relay struct {
	Live      *livesales.List
	Publisher *Publisher
	Queues    NewQueues
	Log       *slog.Logger
}

// Run works until ctx ends. The triggers have a goroutine each, because the outbox must not wait
// for a shard that cannot be republished.
func (r *Relay) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return workers.Every(ctx, relayInterval, r.relay) })
	g.Go(func() error { return r.serveNewQueues(ctx) })
	return g.Wait()
}

// relay publishes the old outbox entries of every live sale. It reads only outboxes with entries:
// thousands of sales may sell at the same time, and their outboxes are empty nearly always.
func (r *Relay) relay(ctx context.Context) {
	found, err := r.Publisher.Store.WithEntries(ctx, seckill.GoodsIDs(r.Live.Sales()))
	workers.Warn(ctx, r.Log, "cannot read outboxes, retrying", err)
	workers.Each(ctx, found, func(ctx context.Context, goodsID int64) {
		log := r.Log.With("goods_id", goodsID)
		n, err := r.Publisher.PublishUnconfirmed(ctx, goodsID, relayAfter)
		if n > 0 {
			log.InfoContext(ctx, "published entries of the outbox", "entries", n)
		}
		r.warn(ctx, log, "cannot publish the outbox, retrying", err)
	})
}

// warn logs an error. It does not log a queue that is down, because the broker connection logs
// that. Besides, at the start the queue is up before the connection that publishes.
func (r *Relay) warn(ctx context.Context, log *slog.Logger, message string, err error) {
	if !errors.Is(err, order.ErrQueueDown) {
		workers.Warn(ctx, log, message, err)
	}
}

// serveNewQueues republishes the shards of new queues. A shard that fails is retried without a
// limit, because no other store than Redis has its orders. Meanwhile it delays no other shard.
func (r *Relay) serveNewQueues(ctx context.Context) error {
	failed, pause := make(map[int]bool), workers.RetryBackoff()
	var retry <-chan time.Time
	for {
		select {
		case shard := <-r.Queues.Shard:
			failed[shard] = !r.republished(ctx, shard)
		case <-retry:
			for shard := range failed {
				failed[shard] = !r.republished(ctx, shard)
			}
		case <-ctx.Done():
			return nil
		}
		maps.DeleteFunc(failed, func(_ int, again bool) bool { return !again })
		if retry = nil; len(failed) == 0 {
			pause.Reset()
		} else {
			retry = time.After(pause.NextBackOff())
		}
	}
}

// republished republishes a shard once, and reports whether all its orders are in the new queue.
func (r *Relay) republished(ctx context.Context, shard int) bool {
	orders, err := r.republish(ctx, shard)
	log := r.Log.With("shard", shard)
	r.warn(ctx, log, "cannot republish to a new queue, retrying", err)
	if err == nil && orders > 0 {
		log.WarnContext(ctx, "republished pending orders to a new queue", "orders", orders)
	}
	return err == nil
}

// republish tries every sale of the shard, because their Redis masters fail one by one. It marks
// the queue only after all of them, also those that were exposed a moment ago.
func (r *Relay) republish(ctx context.Context, shard int) (int, error) {
	if err := r.Live.Refresh(ctx); err != nil {
		return 0, err
	}
	published := 0
	var errs []error
	for _, sale := range r.Live.All() {
		if order.Shard(sale.GoodsID, r.Queues.Shards) != shard {
			continue
		}
		n, err := r.Publisher.PublishPending(ctx, sale.GoodsID)
		errs = append(errs, err)
		published += n
	}
	if err := errors.Join(errs...); err != nil {
		return published, err
	}
	return published, r.Queues.Mark(ctx, shard)
}
