package rabbit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"flashsale.dev/seckill/internal/order"
)

// Publisher publishes orders on a connection of its own, which Run keeps up. Safe for concurrent use.
type Publisher struct {
	opt     Options
	session atomic.Pointer[session] // nil while there is no connection
	why     atomic.Pointer[string]  // of there being none
}

var _ order.Publisher = (*Publisher)(nil)

// NewPublisher checks the options. The publisher is down until Run has connected it.
func NewPublisher(opt Options) (*Publisher, error) {
	opt, err := opt.complete()
	if err != nil {
		return nil, fmt.Errorf("rabbit publisher: %w", err)
	}
	p := &Publisher{opt: opt}
	p.down("not connected yet")
	return p, nil
}

// Publish sends one message to the goods' shard and returns nil when the broker has confirmed that it keeps it.
// The errors are those of order.Publisher: order.ErrQueueDown means that nothing was sent.
func (p *Publisher) Publish(ctx context.Context, goodsID int64, body []byte) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.opt.PublishTimeout)
		defer cancel()
	}
	if err := p.publish(ctx, order.Shard(goodsID, p.opt.Shards), body); err != nil {
		return fmt.Errorf("publish to RabbitMQ: %w", err)
	}
	return nil
}

func (p *Publisher) publish(ctx context.Context, shard int, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := p.session.Load()
	if s == nil {
		return fmt.Errorf("%w: %s", order.ErrQueueDown, *p.why.Load())
	}
	return s.publish(ctx, shard, body)
}

// Up tells whether every Publish would be sent now.
func (p *Publisher) Up() bool { return p.Trouble() == "" }

// Trouble says why Publish would answer order.ErrQueueDown, for one shard or for all, in words for the operator; empty when it
// would not.
func (p *Publisher) Trouble() string {
	s := p.session.Load()
	if s == nil {
		return *p.why.Load()
	}
	for i := range s.flows {
		if why := s.flows[i].trouble.Load(); why != nil {
			return *why
		}
	}
	return ""
}

// MarkFed records in the broker that a shard's queue holds all it should, so that OnFreshTopology is not called for it until the
// broker loses it.
func (p *Publisher) MarkFed(ctx context.Context, shard int) error {
	s := p.session.Load()
	if s == nil {
		return fmt.Errorf("mark shard %d as fed: %w", shard, order.ErrQueueDown)
	}
	m := markFed{shard: shard, done: make(chan error, 1)}
	select {
	case s.marks <- m:
	case <-ctx.Done():
		return fmt.Errorf("mark shard %d as fed: %w", shard, ctx.Err())
	case <-s.over:
		return fmt.Errorf("mark shard %d as fed: %w", shard, order.ErrQueueDown)
	}
	if err := <-m.done; err != nil {
		return fmt.Errorf("mark shard %d as fed: %w", shard, err)
	}
	return nil
}

// Run keeps a connection up until ctx ends, then waits for the confirms under way and returns nil. It is called once. It begins
// with an address by chance, so that many programs do not all meet on the first, and goes to the next as soon as one ends.
func (p *Publisher) Run(ctx context.Context) error {
	pause := retries()
	first := rand.IntN(len(p.opt.URLs))
	for next := 0; ctx.Err() == nil; next++ {
		address := p.opt.URLs[(first+next)%len(p.opt.URLs)]
		err := p.serve(ctx, address, pause)
		if err == nil || ctx.Err() != nil {
			break
		}
		p.down(err.Error())
		p.opt.Logger.Warn("publisher lost RabbitMQ, trying again", "err", err)
		if (next+1)%len(p.opt.URLs) == 0 {
			sleep(ctx, pause.NextBackOff())
		}
	}
	p.down("the publisher has stopped")
	return nil
}

// serve is one connection's life.
func (p *Publisher) serve(ctx context.Context, address string, pause backoff.BackOff) error {
	s, err := openSession(ctx, address, p.opt)
	if err != nil {
		return err
	}
	p.session.Store(s)
	began := time.Now()
	p.opt.Logger.Info("publisher connected to RabbitMQ", "host", s.link.host)
	err = s.serve(ctx)
	if time.Since(began) > retryMost {
		pause.Reset()
	}
	return err
}

func (p *Publisher) down(why string) {
	p.why.Store(&why)
	p.session.Store(nil)
}

// retries grows from retryFirst to retryMost, with a quarter of jitter, so that a broker that comes back is not met by all its
// clients at once, and yet by each within two seconds.
func retries() backoff.BackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: retryFirst, MaxInterval: retryMost, Multiplier: 2, RandomizationFactor: 0.25,
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
