package rabbit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// Source opens streams. Each stream has a connection of its own. One can then be aborted without
// the others, and several goroutines read them in parallel. A process has a handful of shards.
type Source struct {
	opt    Options
	first  int // address of shard 0, at random
	shares *shares
	few    []atomic.Bool // by shard, and of the dead letters: see maxHeld
}

var _ order.Source = (*Source)(nil)

// NewSource validates the options. It does not connect.
func NewSource(opt Options) (*Source, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rabbit source: %w", err)
	}
	return &Source{
		opt: opt, first: rand.IntN(len(opt.URLs)), shares: newShares(opt.Shards),
		few: make([]atomic.Bool, opt.Shards+1),
	}, nil
}

// Shards is the number of shards.
func (s *Source) Shards() int { return s.opt.Shards }

// Open connects to an address that answers, declares the shard's queue and consumes it. The first
// address that it tries differs from shard to shard. The broker delivers to one consumer of the
// shard, and to the next when that connection ends. Open reports a queue as new that it has made,
// or that has no mark: no publisher notices a queue that vanishes while nobody publishes. Open
// returns within seconds.
func (s *Source) Open(ctx context.Context, shard int) (order.Stream, error) {
	if shard < 0 || shard >= s.opt.Shards {
		return nil, fmt.Errorf("open shard %d of %d: no such shard", shard, s.opt.Shards)
	}
	known := true
	st, err := s.open(ctx, shard, queueName(shard), s.shares, func(c *connection) (err error) {
		if known, err = c.declareShard(shard, s.opt.DeliveryLimit); err == nil && known {
			known, err = c.marked(shard)
		}
		return err
	})
	if !known && s.opt.OnNewQueue != nil {
		s.opt.OnNewQueue(shard)
	}
	if err != nil {
		return nil, wrap(err, "open shard %d", shard)
	}
	return st, nil
}

// OpenDead consumes the dead letters. Several streams share them.
func (s *Source) OpenDead(ctx context.Context) (order.Stream, error) {
	st, err := s.open(ctx, s.opt.Shards, deadName, nil, func(*connection) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	return st, nil
}

// open connects, declares and consumes one queue. Its turn is the shard, and one more for the queue
// of dead letters. open declares that queue too: before it exists, at-least-once dead lettering
// would keep a message beyond its delivery limit in its queue.
func (s *Source) open(
	ctx context.Context, turn int, queue string, shares *shares, declare func(*connection) error,
) (*stream, error) {
	conn, err := s.connect(ctx, turn)
	if err != nil {
		return nil, err
	}
	st := newStream(conn, queue, s.opt, shares, &s.few[turn])
	err = conn.withTimeout(ctx, setupTimeout, func() error {
		if err := conn.declareDead(); err != nil {
			return err
		}
		if err := declare(conn); err != nil {
			return err
		}
		return st.consume(amqp.Table{"x-priority": int32(samePriority)})
	})
	if err != nil {
		conn.disconnect()
		return nil, err
	}
	st.run()
	return st, nil
}

// connect tries each address once, from that of the turn on.
func (s *Source) connect(ctx context.Context, turn int) (*connection, error) {
	var failed []error
	for i := range s.opt.URLs {
		address := s.opt.URLs[(s.first+turn+i)%len(s.opt.URLs)]
		conn, err := dial(ctx, address)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}
