package order

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"
)

// ConsumerOptions tune a Consumer.
type ConsumerOptions struct {
	BatchSize int           // orders in one transaction at most
	Linger    time.Duration // how long a batch that is not full waits for more
}

// Consumer takes messages from every shard's stream and has them written: a batch is written, settled and then
// acknowledged, so whatever dies in between, the messages come again and are recognised.
type Consumer struct {
	source Source
	writer *Writer
	opts   ConsumerOptions
	log    *slog.Logger
	tracer Tracer
}

// NewConsumer makes a consumer.
func NewConsumer(source Source, writer *Writer, opts ConsumerOptions, tracer Tracer, log *slog.Logger) *Consumer {
	return &Consumer{source: source, writer: writer, opts: opts, log: log, tracer: tracer}
}

// Run consumes until ctx ends. Then the batch in hand is finished and what was not begun goes back to its queue.
func (c *Consumer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for shard := range c.source.Shards() {
		g.Go(func() error { return c.runShard(ctx, shard) })
	}
	return g.Wait()
}

// runShard opens the shard's stream again whenever it ends.
func (c *Consumer) runShard(ctx context.Context, shard int) error {
	pause := retryPause()
	for ctx.Err() == nil {
		stream, err := c.source.Open(ctx, shard)
		if err == nil {
			pause.Reset()
			err = c.drain(ctx, shard, stream)
		}
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "order stream ended, opening it again", "shard", shard, "err", err)
		}
		sleep(ctx, pause.NextBackOff())
	}
	return nil
}

// drain writes batch after batch until the stream or ctx ends.
func (c *Consumer) drain(ctx context.Context, shard int, stream Stream) (err error) {
	defer func() { err = errors.Join(err, stream.Close()) }()
	for ctx.Err() == nil {
		batch := c.collect(ctx, stream.Deliveries())
		if len(batch) == 0 {
			return nil
		}
		c.log.DebugContext(ctx, "writing a batch", "shard", shard, "messages", len(batch), "orders", ordersIn(batch))
		if err := c.write(ctx, batch); err != nil {
			return err
		}
		if err := stream.Ack(batch[len(batch)-1].Tag); err != nil {
			return err
		}
	}
	return nil
}

// write writes a batch, and is a step of every purchase in it that is followed.
func (c *Consumer) write(ctx context.Context, batch []received) error {
	ctx, end := StartSpan(ctx, c.tracer, "write a batch", marksOf(batch)...)
	err := c.writer.Write(ctx, batch)
	end(err)
	return err
}

// collect waits for a first delivery, and then for more until the batch is full or the linger is over. An empty batch
// means that the stream or ctx has ended.
func (c *Consumer) collect(ctx context.Context, deliveries <-chan Delivery) []received {
	var batch []received
	var linger <-chan time.Time
	for orders := 0; orders < c.opts.BatchSize; {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return nil // acknowledging is not possible any more: all of it will come again
			}
			r := receive(d)
			batch, orders = append(batch, r), orders+r.weight()
			if linger == nil {
				linger = time.After(c.opts.Linger)
			}
		case <-linger:
			return batch
		case <-ctx.Done():
			return nil
		}
	}
	return batch
}

// received is a delivery and what it says.
type received struct {
	Delivery
	message Message
	err     error // why it can't be read
}

func receive(d Delivery) received {
	m, err := Decode(d.Body)
	return received{Delivery: d, message: m, err: err}
}

// weight is how much of a batch it fills: its orders, and one for a message without any.
func (r received) weight() int { return max(1, len(r.message.Orders)) }

func ordersIn(batch []received) int {
	n := 0
	for _, r := range batch {
		n += r.weight()
	}
	return n
}

// retryPause spaces tries that will go on for ever: from 50 ms to 2 s, with jitter.
func retryPause() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 50*time.Millisecond, 2*time.Second
	b.Reset()
	return b
}

// sleep waits, or returns early where ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
