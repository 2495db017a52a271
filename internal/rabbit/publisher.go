package rabbit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/workers"
)

// Publisher publishes orders on a connection of its own, which Run maintains. It is safe for
// concurrent use.
type Publisher struct {
	opt    Options
	conn   atomic.Pointer[publisherConnection] // nil while there is no connection
	reason atomic.Pointer[error]               // why there is none
	stall  atomic.Pointer[stallError]          // of the last connection that ended so
}

var _ order.Publisher = (*Publisher)(nil)

// NewPublisher validates the options. The publisher is down until Run has connected it.
func NewPublisher(opt Options) (*Publisher, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rabbit publisher: %w", err)
	}
	p := &Publisher{opt: opt}
	p.setDown(downError("not connected yet"))
	return p, nil
}

// Publish sends one message to the goods' shard and returns nil when the broker has confirmed it.
// Its errors are those of order.Publisher: after order.ErrQueueDown it sent nothing.
func (p *Publisher) Publish(ctx context.Context, goodsID int64, body []byte) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.opt.PublishTimeout)
		defer cancel()
	}
	err := ctx.Err()
	switch conn := p.conn.Load(); {
	case err != nil:
	case conn != nil:
		err = conn.publish(ctx, order.Shard(goodsID, p.opt.Shards), body)
	default: // the outbox has the reservation, and the relay will publish it
		err = fmt.Errorf("%w: %w", order.ErrQueueDown, *p.reason.Load())
	}
	return wrap(err, "publish to RabbitMQ")
}

// Hosts returns the addresses without users and passwords, for operators.
func (p *Publisher) Hosts() string {
	hosts := make([]string, len(p.opt.URLs))
	for i, address := range p.opt.URLs {
		uri, _ := amqp.ParseURI(address) // withDefaults has parsed it
		hosts[i] = hostOf(uri)
	}
	return strings.Join(hosts, ",")
}

// DownReason returns, for operators, why Publish would return order.ErrQueueDown for at least one
// shard. It also returns why no message may be confirmed (see stallError). It is nil if no shard is
// down. Package cause has a short form of it.
func (p *Publisher) DownReason() error {
	conn := p.conn.Load()
	if conn == nil {
		return *p.reason.Load()
	}
	for i := range conn.shards {
		if reason := conn.shards[i].reason.Load(); reason != nil {
			return downError(*reason)
		}
	}
	if stall := p.stall.Load(); stall.lasts(conn) {
		return downError("the broker confirms nothing: " + stall.reason)
	}
	return nil
}

// downError is a reason that contains no address, so it is its own cause.
type downError string

// Error returns the reason.
func (d downError) Error() string { return string(d) }

// Cause returns the reason.
func (d downError) Cause() string { return string(d) }

// MarkRepublished records in the broker that a shard's queue has all pending orders. The publisher
// then does not call OnNewQueue for the shard until the broker loses the record. It has its own
// deadline, because other callers use the connection that an unfinished call would end.
func (p *Publisher) MarkRepublished(_ context.Context, shard int) error {
	conn := p.conn.Load()
	if conn == nil {
		return order.ErrQueueDown
	}
	return wrap(conn.mark(shard), "mark shard %d as republished", shard)
}

// Run maintains a connection until ctx ends, then waits for the confirms in flight and returns nil.
// It must be called once. It starts with a random address, so that many programs do not all connect
// to the first one. When a connection ends, it tries the next address.
func (p *Publisher) Run(ctx context.Context) error {
	pause := newBackoff()
	first := rand.IntN(len(p.opt.URLs))
	failed := make([]error, len(p.opt.URLs)) // the latest error of each address
	for next := 0; ctx.Err() == nil; next++ {
		turn := (first + next) % len(p.opt.URLs)
		err := p.serve(ctx, p.opt.URLs[turn], pause)
		if err == nil || ctx.Err() != nil {
			break
		}
		failed[turn] = err
		if stall, ok := errors.AsType[*stallError](err); ok {
			p.stall.Store(stall)
		}
		p.setDown(errors.Join(failed...)) // the address that was tried last may hide the cause
		p.opt.Logger.Warn("publisher lost RabbitMQ, reconnecting; check the node and SECKILL_AMQP_URL",
			"err", err)
		if (next+1)%len(p.opt.URLs) == 0 {
			workers.Sleep(ctx, pause.NextBackOff())
		}
	}
	p.setDown(downError("the publisher has stopped"))
	return nil
}

// serve opens one connection and maintains it until it ends.
func (p *Publisher) serve(ctx context.Context, address string, pause backoff.BackOff) error {
	conn, err := openPublisherConnection(ctx, address, p.opt)
	if err != nil {
		return err
	}
	p.conn.Store(conn)
	began := time.Now()
	p.opt.Logger.Info("publisher connected to RabbitMQ", "host", conn.conn.host)
	err = wrap(withChannelCause(conn.serve(ctx)), "%s", conn.conn.host)
	if time.Since(began) > retryMost {
		pause.Reset()
	}
	return err
}

// setDown stores the reason before it removes the connection, so that a caller without a connection
// always has a reason.
func (p *Publisher) setDown(reason error) {
	p.reason.Store(&reason)
	p.conn.Store(nil)
}

// newBackoff grows from retryFirst to retryMost with a jitter of a quarter. The clients of a
// restarted broker then reconnect within two seconds and not all at once.
func newBackoff() backoff.BackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: retryFirst, MaxInterval: retryMost, Multiplier: 2,
		RandomizationFactor: 0.25,
	}
}
