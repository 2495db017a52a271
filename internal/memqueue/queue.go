package memqueue

import (
	"context"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// Queue is an in-process order queue.
type Queue struct{ shards []*shard }

// New makes an empty queue of a number of shards.
func New(shards int) *Queue {
	q := &Queue{}
	for i := range shards {
		q.shards = append(q.shards, &shard{name: fmt.Sprintf("memory.%d", i)})
	}
	return q
}

// Publish sends a message to its goods' shard and returns nil once the consumer has acknowledged
// it. If the context ends first, Publish returns its error, and withdraws a message that was never
// delivered. A delivered message remains in the queue, and its outcome is unknown.
func (q *Queue) Publish(ctx context.Context, goodsID int64, body []byte) error {
	s := q.shards[order.Shard(goodsID, len(q.shards))]
	m := &message{body: body, published: time.Now().UTC(), acked: make(chan struct{})}
	if err := s.publish(ctx, m); err != nil {
		return fmt.Errorf("publish in memory: %w", err)
	}
	return nil
}

// Shards returns the number of shards.
func (q *Queue) Shards() int { return len(q.shards) }

// Open returns a stream of shard n, from 0. It gets deliveries after every stream opened before it
// is closed. The error means that there is no such shard, or that ctx has ended.
func (q *Queue) Open(ctx context.Context, n int) (order.Stream, error) {
	if n < 0 || n >= len(q.shards) {
		return nil, fmt.Errorf("open shard %d of %d: no such shard", n, len(q.shards))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open shard %d: %w", n, err)
	}
	return openStream(q.shards[n]), nil
}
