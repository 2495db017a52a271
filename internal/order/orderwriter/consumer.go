package orderwriter

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/workers"
)

// Consumer reads every shard's stream and passes its messages to the writer in batches. It
// acknowledges a message after the commit. A crash in between leads to a redelivery, and the writer
// recognises the orders that are already written.
type Consumer struct {
	*Writer
	Source    order.Source
	BatchSize int           // orders of a full batch; its last message may bring more
	Linger    time.Duration // the least time between two batches, unless the second is full
}

// Processors returns how many of the processors that Go may use a program should use that only
// consumes: a quarter, at least one. It waits for servers most of the time. With more processors,
// Go's scheduler wakes those that are idle for each message and for each answer of a server (ADR
// 97).
func Processors(all int) int { return max(1, all/4) }

// Run consumes until ctx ends and then returns nil. Unacknowledged messages go back to their
// queues.
func (c *Consumer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for shard := range c.Source.Shards() {
		g.Go(func() error { return c.runShard(ctx, shard) })
	}
	return g.Wait()
}

// runShard opens the shard's stream again whenever it ends.
func (c *Consumer) runShard(ctx context.Context, shard int) error {
	pause := workers.RetryBackoff()
	for ctx.Err() == nil {
		stream, err := c.Source.Open(ctx, shard)
		if err == nil {
			pause.Reset()
			err = c.consume(ctx, shard, stream)
		}
		workers.Warn(ctx, c.Log,
			"order stream ended, opening it again; check RabbitMQ and SECKILL_AMQP_URL", err,
			"shard", shard)
		workers.Sleep(ctx, pause.NextBackOff())
	}
	return nil
}

// consume writes batch after batch until the stream or ctx ends. The first batch of a new stream
// waits too, because the queue may have many messages.
func (c *Consumer) consume(ctx context.Context, shard int, stream order.Stream) (err error) {
	defer func() { err = errors.Join(err, stream.Close()) }()
	for ctx.Err() == nil {
		batch := c.collect(ctx, stream.Deliveries(), time.Now().Add(c.Linger))
		if len(batch) == 0 {
			return nil
		}
		c.Log.DebugContext(ctx, "writing a batch",
			"shard", shard, "messages", len(batch), "orders", countOrders(batch))
		if err := c.write(ctx, batch, stream); err != nil {
			return err
		}
	}
	return nil
}

// write writes and acknowledges a batch as one span that is linked to the trace of each message.
func (c *Consumer) write(ctx context.Context, batch []received, stream order.Stream) error {
	ctx, end := order.StartSpan(ctx, c.Tracer, "write a batch", marksOf(batch)...)
	err := c.Write(ctx, batch, func(n int) error { return stream.Ack(batch[n-1].Tag) })
	end(err)
	return err
}

// collect waits for a first delivery, and then for more until the batch is full or due. A message
// that arrives after that time is written at once. collect returns an empty batch when the stream
// or ctx has ended.
func (c *Consumer) collect(
	ctx context.Context, deliveries <-chan order.Delivery, due time.Time,
) []received {
	var batch []received
	var isDue <-chan time.Time
	for orders := 0; orders < c.BatchSize; {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return nil // the broker accepts no acknowledgement and redelivers the batch
			}
			message, err := message.Decode(d.Body)
			r := received{d, message, err}
			batch, orders = append(batch, r), orders+r.size()
			if isDue == nil {
				isDue = time.After(time.Until(due))
			}
		case <-isDue:
			return batch
		case <-ctx.Done():
			return nil
		}
	}
	return batch
}

// received is a delivery and its decoded message.
type received struct {
	order.Delivery
	message message.Message
	err     error // of decoding the message
}

// size counts the orders of a message for the limit of a batch. A message without orders counts as
// one.
func (r received) size() int { return max(1, len(r.message.Orders)) }

func countOrders(batch []received) int {
	n := 0
	for _, r := range batch {
		n += r.size()
	}
	return n
}

// marksOf returns the trace marks of a batch's messages.
func marksOf(batch []received) []string {
	marks := make([]string, len(batch))
	for i, r := range batch {
		marks[i] = r.TraceParent
	}
	return marks
}
