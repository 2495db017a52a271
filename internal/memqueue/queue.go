package memqueue

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/order"
)

// Options bound the queue. Zero values take the defaults.
type Options struct {
	Shards   int // 1
	Capacity int // messages that a shard holds, unacknowledged ones included: 4096
	Prefetch int // unacknowledged messages of a stream: 512
}

// Queue is an in-process order queue.
type Queue struct {
	shards   []*shard
	prefetch int
}

var (
	_ order.Publisher = (*Queue)(nil)
	_ order.Source    = (*Queue)(nil)
)

// New makes an empty queue.
func New(opt Options) *Queue {
	q := &Queue{prefetch: cmp.Or(opt.Prefetch, 512)}
	for i := range cmp.Or(opt.Shards, 1) {
		q.shards = append(q.shards, newShard(i, cmp.Or(opt.Capacity, 4096)))
	}
	return q
}

// Publish sends a message to its goods' shard and returns nil once the consumer has acknowledged
// it. If the context ends first, Publish withdraws a message that was never delivered. Any other
// one remains in the queue, and its outcome is unknown.
func (q *Queue) Publish(ctx context.Context, goodsID int64, body []byte) error {
	s := q.shards[order.Shard(goodsID, len(q.shards))]
	m := &message{body: body, published: time.Now().UTC(), acked: make(chan struct{})}
	if err := s.publish(ctx, m); err != nil {
		return fmt.Errorf("publish in memory: %w", err)
	}
	return nil
}

// Shards is the number of shards.
func (q *Queue) Shards() int { return len(q.shards) }

// Open returns a stream of the shard. It gets deliveries after every stream opened before it is
// closed.
func (q *Queue) Open(ctx context.Context, n int) (order.Stream, error) {
	if n < 0 || n >= len(q.shards) {
		return nil, fmt.Errorf("open shard %d of %d: no such shard", n, len(q.shards))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open shard %d: %w", n, err)
	}
	return openStream(q.shards[n], q.prefetch), nil
}
