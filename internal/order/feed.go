package order

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Marker records in the broker that all pending orders of a shard have been published to its queue. The
// broker loses the mark together with the queue's messages.
type Marker interface {
	MarkRepublished(ctx context.Context, shard int) error
}

// Feeder publishes all that is pending again to a shard whose queue is known to be new: the broker lost what it had
// confirmed, and Redis still knows it.
type Feeder struct {
	live   *Live
	relay  *Relay
	marker Marker
	shards int
	fresh  <-chan int
	log    *slog.Logger
}

// NewFeeder makes a feeder that is told of fresh shards on a channel. The same shard may come more than once.
func NewFeeder(live *Live, relay *Relay, marker Marker, shards int, fresh <-chan int, log *slog.Logger) *Feeder {
	return &Feeder{live: live, relay: relay, marker: marker, shards: shards, fresh: fresh, log: log}
}

// Run feeds until ctx ends.
func (f *Feeder) Run(ctx context.Context) error {
	for {
		select {
		case shard := <-f.fresh:
			f.insist(ctx, shard)
		case <-ctx.Done():
			return nil
		}
	}
}

// insist feeds a shard until it is done: what is not fed is a promise that nobody carries.
func (f *Feeder) insist(ctx context.Context, shard int) {
	pause := retryPause()
	for ctx.Err() == nil {
		orders, err := f.feed(ctx, shard)
		if err == nil {
			if orders > 0 {
				f.log.WarnContext(ctx, "fed a new queue what is pending", "shard", shard, "orders", orders)
			}
			return
		}
		f.log.WarnContext(ctx, "can't feed a new queue yet, trying on", "shard", shard, "err", err)
		sleep(ctx, pause.NextBackOff())
	}
}

func (f *Feeder) feed(ctx context.Context, shard int) (int, error) {
	f.live.Refresh(ctx)
	fed, troubles := 0, []error(nil)
	for _, sale := range f.live.Sales() {
		if Shard(sale.GoodsID, f.shards) != shard {
			continue
		}
		n, err := f.relay.Feed(ctx, sale.GoodsID, time.Now().Add(time.Hour))
		troubles = append(troubles, err) // another sale's Redis may be there
		fed += n
	}
	if err := errors.Join(troubles...); err != nil {
		return fed, err
	}
	return fed, f.marker.MarkRepublished(ctx, shard)
}
