package rabbit

import (
	"context"
	"fmt"
	"time"
)

// spreadTimeout bounds the detour over another node: a node that is away must not keep a queue from being made.
const spreadTimeout = 500 * time.Millisecond

// declare makes everything over a link, bounded by its caller.
//
// A queue that is missing is made over a connection of its own to the address of the shard's turn: RabbitMQ has a queue be led by
// the node to which whoever declares it is connected, so the shards spread over the nodes. An argument of the queue would
// do that too (x-queue-leader-locator), but a queue keeps its arguments for ever, and a program of an older release, which
// declares it without, would be refused.
func (o Options) declare(ctx context.Context, l *link) error {
	if err := declareDead(l); err != nil {
		return err
	}
	for shard := range o.Shards {
		if len(o.URLs) > 1 {
			if err := o.declareMissing(ctx, l, shard); err != nil {
				return err
			}
		}
		if err := declareShard(l, shard, o.DeliveryLimit); err != nil {
			return err
		}
	}
	return nil
}

// declareMissing tries to make a missing queue on its node. Its errors are those of our own connection: that the other was in
// vain is no trouble.
func (o Options) declareMissing(ctx context.Context, l *link, shard int) error {
	exists, err := queueExists(l.Connection, queueName(shard))
	if exists || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, spreadTimeout)
	defer cancel()
	other, err := dial(ctx, o.URLs[shard%len(o.URLs)], o.Name)
	if err == nil {
		err = other.within(ctx, spreadTimeout, func() error { return declareShard(other, shard, o.DeliveryLimit) })
		other.drop()
	}
	if err != nil {
		o.Logger.Debug("a queue is made on the node at hand", "shard", shard, "err", fmt.Errorf("spread queues: %w", err))
	}
	return nil
}
