package outbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/workers"
)

// BrokerMarker records in the broker that all pending orders of a shard have been published to its queue. The
// broker loses the mark together with the queue's messages.
type BrokerMarker interface {
	MarkRepublished(ctx context.Context, shard int) error
}

// Republisher publishes all that is pending again to a shard whose queue is known to be new: the broker lost what it had
// confirmed, and Redis still knows it.
type Republisher struct {
	live   *livesales.List
	relay  *Relay
	marker BrokerMarker
	shards int
	fresh  <-chan int
	log    *slog.Logger
}

// NewRepublisher makes a feeder that is told of fresh shards on a channel. The same shard may come more than once.
func NewRepublisher(live *livesales.List, relay *Relay, marker BrokerMarker, shards int, fresh <-chan int, log *slog.Logger) *Republisher {
	return &Republisher{live: live, relay: relay, marker: marker, shards: shards, fresh: fresh, log: log}
}

// Run feeds until ctx ends.
func (f *Republisher) Run(ctx context.Context) error {
	for {
		select {
		case shard := <-f.fresh:
			f.republishUntilDone(ctx, shard)
		case <-ctx.Done():
			return nil
		}
	}
}

// insist feeds a shard until it is done: what is not fed is a promise that nobody carries.
func (f *Republisher) republishUntilDone(ctx context.Context, shard int) {
	pause := workers.RetryBackoff()
	for ctx.Err() == nil {
		orders, err := f.republish(ctx, shard)
		if err == nil {
			if orders > 0 {
				f.log.WarnContext(ctx, "fed a new queue what is pending", "shard", shard, "orders", orders)
			}
			return
		}
		f.log.WarnContext(ctx, "can't feed a new queue yet, trying on", "shard", shard, "err", err)
		workers.Sleep(ctx, pause.NextBackOff())
	}
}

func (f *Republisher) republish(ctx context.Context, shard int) (int, error) {
	f.live.Refresh(ctx)
	fed, troubles := 0, []error(nil)
	for _, sale := range f.live.Sales() {
		if order.Shard(sale.GoodsID, f.shards) != shard {
			continue
		}
		n, err := f.relay.Republish(ctx, sale.GoodsID, time.Now().Add(time.Hour))
		troubles = append(troubles, err) // another sale's Redis may be there
		fed += n
	}
	if err := errors.Join(troubles...); err != nil {
		return fed, err
	}
	return fed, f.marker.MarkRepublished(ctx, shard)
}
