package rabbit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/order"
)

// Source opens streams. Each has a connection of its own: nothing is shared, so one can be cut without touching the
// others, and they are read side by side. A process has a handful of shards.
type Source struct {
	opt     Options
	first   int // of the addresses, by chance
	balance balance
	present presence
}

var _ order.Source = (*Source)(nil)

// NewSource checks the options.
func NewSource(opt Options) (*Source, error) {
	opt, err := opt.complete()
	if err != nil {
		return nil, fmt.Errorf("rabbit source: %w", err)
	}
	return &Source{
		opt: opt, first: rand.IntN(len(opt.URLs)),
		balance: balance{shards: opt.Shards, active: make(map[*stream]bool), given: make(map[string]time.Time)},
		present: presence{opt: opt, id: uuid.NewString(), heard: make(map[string]time.Time)},
	}, nil
}

// Shards is the number of shards.
func (s *Source) Shards() int { return s.opt.Shards }

// Open connects to an address that answers, another first for each shard, declares the shard's queue and consumes it. Of all that
// opened the shard, the broker gives one the deliveries, and the next when that one goes; the stream ends by itself
// where this process has more than its share of the shards and another waits (see balance). It returns within
// seconds whatever the broker does.
func (s *Source) Open(ctx context.Context, shard int) (order.Stream, error) {
	if shard < 0 || shard >= s.opt.Shards {
		return nil, fmt.Errorf("open shard %d of %d: no such shard", shard, s.opt.Shards)
	}
	st, err := s.open(ctx, shard, queueName(shard), func(l *link) error {
		return declareShard(l, shard, s.opt.DeliveryLimit)
	})
	if err != nil {
		return nil, fmt.Errorf("open shard %d: %w", shard, err)
	}
	st.share, st.present = &s.balance, &s.present
	st.start()
	return st, nil
}

// OpenDead consumes the dead letters. Several that open it share them.
func (s *Source) OpenDead(ctx context.Context) (order.Stream, error) {
	st, err := s.open(ctx, 0, deadName, func(*link) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	st.start()
	return st, nil
}

func (s *Source) open(ctx context.Context, turn int, queue string, declareQueue func(*link) error) (*stream, error) {
	l, err := s.connect(ctx, turn)
	if err != nil {
		return nil, err
	}
	st := newStream(l, queue, s.opt)
	err = l.within(ctx, setupTimeout, func() error {
		if err := declareDead(l); err != nil {
			return err
		}
		if err := declareQueue(l); err != nil {
			return err
		}
		return st.consume(s.opt.Prefetch)
	})
	if err != nil {
		l.drop()
		return nil, err
	}
	return st, nil
}

// connect tries each address once, beginning with that of a turn.
func (s *Source) connect(ctx context.Context, turn int) (*link, error) {
	var failed []error
	for i := range s.opt.URLs {
		address := s.opt.URLs[(s.first+turn+i)%len(s.opt.URLs)]
		l, err := dial(ctx, address, s.opt.Name)
		if err == nil {
			return l, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}
