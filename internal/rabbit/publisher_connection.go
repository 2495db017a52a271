package rabbit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// publisherConnection is one connection of a publisher, from its topology to its end.
type publisherConnection struct {
	opt      Options
	conn     *connection
	channels []*confirmChannel // a shard keeps to one, so that its messages keep their order
	inFlight chan struct{}     // one token per unconfirmed message
	shards   []shardHealth
	blocked  chan amqp.Blocking
	returned chan struct{} // a message was returned: the topology must be declared again
	closed   chan struct{} // closed when serve has ended

	// topology is held from a declaration until new queues have been reported. A mark in between
	// would hide a new queue.
	topology sync.Mutex
}

// openPublisherConnection connects, declares the topology and opens the channels.
func openPublisherConnection(
	ctx context.Context, address string, opt Options,
) (*publisherConnection, error) {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	p := &publisherConnection{
		opt: opt, conn: conn,
		inFlight: make(chan struct{}, opt.MaxUnconfirmed), shards: make([]shardHealth, opt.Shards),
		blocked: conn.NotifyBlocked(make(chan amqp.Blocking, 16)), returned: make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
	if err := conn.withTimeout(ctx, setupTimeout,
		func() error { return p.setUp(ctx) }); err != nil {
		conn.disconnect()
		return nil, fmt.Errorf("set up %s: %w", conn.host, err)
	}
	p.topology.Lock() // until serve has reported new queues
	return p, nil
}

// setUp declares the topology and opens at most one channel per shard. More channels on one queue
// did not raise its rate (ADR 20).
func (p *publisherConnection) setUp(ctx context.Context) error {
	if err := p.opt.declare(ctx, p.conn); err != nil {
		return err
	}
	if err := p.checkShards(); err != nil {
		return err
	}
	for range min(channels, p.opt.Shards) {
		ch, err := openConfirmChannel(p.conn, p.returned)
		if err != nil {
			return err
		}
		p.channels = append(p.channels, ch)
	}
	return nil
}

// checkShards warns if the broker has more order queues than this program. Orders in a queue that
// no consumer knows are written only after the republisher has sent them again.
func (p *publisherConnection) checkShards() error {
	queue := queueName(p.opt.Shards)
	more, err := p.conn.queueExists(queue)
	if more {
		p.opt.Logger.Warn("RabbitMQ has more order queues than SECKILL_ORDER_SHARDS: set the same "+
			"number on every node, or delete the empty queues of an earlier number",
			"host", p.conn.host, "queue", queue, "shards", p.opt.Shards)
	}
	return err
}

// publish sends one message and returns its outcome.
func (p *publisherConnection) publish(ctx context.Context, shard int, body []byte) error {
	health := &p.shards[shard]
	if err := health.err(); err != nil {
		return err
	}
	began := time.Now()
	select {
	case p.inFlight <- struct{}{}:
	case <-p.closed:
		return fmt.Errorf("%w: the connection ended", order.ErrQueueDown)
	case <-ctx.Done():
		return fmt.Errorf("nothing was sent, too many messages are in flight: %w", ctx.Err())
	}
	ch := p.channels[shard%len(p.channels)]
	sent := time.Now()
	m, err := ch.publish(shard, body, sent, p.opt.headers(ctx))
	if err != nil {
		<-p.inFlight
		return err
	}
	health.sent.Add(1)
	sending := time.Since(began)
	settled, err := ch.wait(ctx, m)
	if settled {
		p.settle(shard, err)
	}
	p.opt.OnOutcome(sending, time.Since(sent), err)
	return err
}

// settle counts the outcome of one message and releases its token.
func (p *publisherConnection) settle(shard int, outcome error) {
	p.shards[shard].settle(outcome)
	<-p.inFlight
}

// settleAbandoned settles the messages that were confirmed after their callers stopped waiting.
func (p *publisherConnection) settleAbandoned() {
	for _, ch := range p.channels {
		for _, m := range ch.takeAbandoned() {
			p.settle(m.shard, ch.outcome(m))
		}
	}
}

// serve maintains the connection until it fails or ctx ends. Then it waits for the confirms in
// flight.
func (p *publisherConnection) serve(ctx context.Context) error {
	defer close(p.closed)
	defer p.conn.disconnect()
	err := p.reportNewQueues(ctx)
	p.topology.Unlock()
	if err != nil {
		return err
	}
	tick := time.NewTicker(healthCheckEvery)
	defer tick.Stop()
	check := healthCheck{shards: make([]stallTimer, p.opt.Shards)}
	for {
		var err error
		select {
		case <-ctx.Done():
			return p.finish()
		case reason := <-p.conn.ended:
			return closeError(reason)
		case <-p.returned:
			err = p.redeclare(ctx)
		case check.blocked = <-p.blocked:
			p.logBlocked(check.blocked)
			err = p.checkHealth(&check, time.Now())
		case now := <-tick.C:
			err = p.checkHealth(&check, now)
		}
		if err != nil {
			return err
		}
	}
}

// logBlocked logs the start and the end of an alarm: the connection stays, so nothing else does.
func (p *publisherConnection) logBlocked(b amqp.Blocking) {
	if b.Active {
		p.opt.Logger.Warn(
			"RabbitMQ blocks publishers: clear its alarm (rabbitmq-diagnostics alarms)",
			"host", p.conn.host, "reason", b.Reason)
		return
	}
	p.opt.Logger.Info("RabbitMQ takes messages again", "host", p.conn.host)
}

// closeError turns the library's reason into an error. The reason is nil after an orderly close.
func closeError(reason *amqp.Error) error {
	if reason == nil {
		return errors.New("connection closed")
	}
	return fmt.Errorf("connection ended: %w", reason)
}

// redeclare repairs the topology after a message was returned, and reports new queues.
func (p *publisherConnection) redeclare(ctx context.Context) error {
	p.opt.Logger.Warn("a message was returned: declaring the queues again", "host", p.conn.host)
	p.topology.Lock()
	defer p.topology.Unlock()
	err := p.conn.withTimeout(ctx, setupTimeout, func() error { return p.opt.declare(ctx, p.conn) })
	if err != nil {
		return wrap(err, "declare again")
	}
	return p.reportNewQueues(ctx)
}

// reportNewQueues reports every unmarked shard after each declaration. It includes shards that
// another process declared or that this process has reported before, because the notified process
// may have died since.
func (p *publisherConnection) reportNewQueues(ctx context.Context) error {
	if p.opt.OnNewQueue == nil {
		return nil
	}
	var shards []int
	err := p.conn.withTimeout(ctx, setupTimeout, func() (err error) {
		shards, err = p.conn.unmarked(p.opt.Shards)
		return err
	})
	for _, shard := range shards {
		p.opt.OnNewQueue(shard)
	}
	return err
}

// mark marks a shard. Any error ends the connection, so that the next one reports the shard again.
func (p *publisherConnection) mark(shard int) error {
	p.topology.Lock()
	defer p.topology.Unlock()
	// The caller's end must not abort the connection, which others use.
	err := p.conn.withTimeout(context.Background(), setupTimeout,
		func() error { return p.conn.mark(shard) })
	if err != nil {
		p.conn.disconnect()
	}
	return err
}

// finish waits for the messages in flight, for PublishTimeout at most, and closes the connection.
func (p *publisherConnection) finish() error {
	stopping := "the publisher is stopping"
	for i := range p.shards {
		p.shards[i].reason.Store(&stopping)
	}
	deadline := time.After(p.opt.PublishTimeout)
	tick := time.NewTicker(healthCheckEvery / 10)
	defer tick.Stop()
	for len(p.inFlight) > 0 {
		select {
		case <-tick.C:
			p.settleAbandoned()
		case <-p.conn.ended: //nolint:errcheck // only the end matters, not its error
			return nil
		case <-deadline:
			return p.conn.close()
		}
	}
	return p.conn.close()
}
