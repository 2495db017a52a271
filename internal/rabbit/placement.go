package rabbit

import (
	"context"
	"time"
)

// placementTimeout bounds the use of another node, so that one that is down delays no queue for
// long.
const placementTimeout = 500 * time.Millisecond

// declare declares the whole topology. The caller bounds the time.
//
// RabbitMQ makes the node of the declaring client the leader of a new queue. So declare declares a
// missing queue over a connection to the address of the shard's turn, which spreads the leaders
// over the nodes. The queue argument x-queue-leader-locator would do the same. Programs of older
// releases declare the queue without it, and RabbitMQ would then refuse them.
func (o Options) declare(ctx context.Context, c *connection) error {
	if err := c.declareDead(); err != nil {
		return err
	}
	for shard := range o.Shards {
		if len(o.URLs) > 1 {
			if err := o.placeMissing(ctx, c, shard); err != nil {
				return err
			}
		}
		if _, err := c.declareShard(shard, o.DeliveryLimit); err != nil {
			return err
		}
	}
	return nil
}

// placeMissing tries to make a missing queue on its node. It returns errors of the own connection
// only: if the other node fails, the own node makes the queue.
func (o Options) placeMissing(ctx context.Context, c *connection, shard int) error {
	exists, err := c.queueExists(queueName(shard))
	if exists || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, placementTimeout)
	defer cancel()
	other, err := dial(ctx, o.URLs[shard%len(o.URLs)])
	if err == nil {
		err = other.withTimeout(ctx, placementTimeout, func() error {
			_, err := other.declareShard(shard, o.DeliveryLimit)
			return err
		})
		other.disconnect()
	}
	if err != nil {
		o.Logger.Debug("declaring the queue on the connected node", "shard", shard, "err", err)
	}
	return nil
}
