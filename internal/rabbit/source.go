package rabbit

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// Source opens streams. Each has a connection of its own: nothing is shared, so one can be cut without touching the
// others, and they are read side by side. A process has a handful of shards.
type Source struct{ opt Options }

var _ order.Source = (*Source)(nil)

// NewSource checks the options.
func NewSource(opt Options) (*Source, error) {
	opt, err := opt.complete()
	if err != nil {
		return nil, fmt.Errorf("rabbit source: %w", err)
	}
	return &Source{opt: opt}, nil
}

// Shards is the number of shards.
func (s *Source) Shards() int { return s.opt.Shards }

// Open connects to the first address that answers, declares the shard's queue and consumes it. Of all that opened the shard, the
// broker gives one the deliveries, and the next when that one goes. It returns within seconds whatever the broker does.
func (s *Source) Open(ctx context.Context, shard int) (order.Stream, error) {
	if shard < 0 || shard >= s.opt.Shards {
		return nil, fmt.Errorf("open shard %d of %d: no such shard", shard, s.opt.Shards)
	}
	st, err := s.open(ctx, queueName(shard), func(c *amqp.Connection) error {
		return declareShard(c, shard, s.opt.DeliveryLimit)
	})
	if err != nil {
		return nil, fmt.Errorf("open shard %d: %w", shard, err)
	}
	return st, nil
}

// OpenDead consumes the dead letters. Several that open it share them.
func (s *Source) OpenDead(ctx context.Context) (order.Stream, error) {
	st, err := s.open(ctx, deadName, func(*amqp.Connection) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	return st, nil
}

func (s *Source) open(ctx context.Context, queue string, declareQueue func(*amqp.Connection) error) (*stream, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	st := newStream(l, queue, s.opt.DeliveryLimit)
	err = l.within(ctx, setupTimeout, func() error {
		if err := onChannel(l.Connection, declareDead); err != nil {
			return err
		}
		if err := declareQueue(l.Connection); err != nil {
			return err
		}
		return st.consume(s.opt.Prefetch)
	})
	if err != nil {
		l.drop()
		return nil, err
	}
	go st.run()
	return st, nil
}

// connect tries each address once.
func (s *Source) connect(ctx context.Context) (*link, error) {
	var failed []error
	for _, address := range s.opt.URLs {
		l, err := dial(ctx, address, s.opt.Name)
		if err == nil {
			return l, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}
