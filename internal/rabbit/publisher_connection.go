package rabbit

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// watchEvery is how often a session looks whether confirms still come.
const watchEvery = 100 * time.Millisecond

// session is one connection of a publisher from its topology to its end.
type session struct {
	opt      Options
	link     *link
	lanes    []*lane       // a shard keeps to one, so that its messages never overtake one another
	slots    chan struct{} // one token per message under way
	flows    []flow        // of each shard
	blocked  chan amqp.Blocking
	returned chan struct{} // the topology is to be declared again
	marks    chan markFed
	over     chan struct{} // closed when nobody looks after the session any more
}

// markFed asks the session's own goroutine to mark a shard.
type markFed struct {
	shard int
	done  chan error
}

// openSession connects, declares and opens the lanes.
func openSession(ctx context.Context, address string, opt Options) (*session, error) {
	l, err := dial(ctx, address, opt.Name)
	if err != nil {
		return nil, err
	}
	s := &session{
		opt: opt, link: l, slots: make(chan struct{}, opt.MaxUnconfirmed), returned: make(chan struct{}, 1),
		blocked: l.NotifyBlocked(make(chan amqp.Blocking, 16)), marks: make(chan markFed), over: make(chan struct{}),
		flows: make([]flow, opt.Shards),
	}
	err = l.within(ctx, setupTimeout, func() error { return s.setUp(ctx) })
	if err != nil {
		l.drop()
		return nil, fmt.Errorf("set up %s: %w", l.host, err)
	}
	return s, nil
}

func (s *session) setUp(ctx context.Context) error {
	if err := s.opt.declare(ctx, s.link); err != nil {
		return err
	}
	for range min(s.opt.Channels, s.opt.Shards) {
		lane, err := openLane(s.link.Connection, s.noteReturn)
		if err != nil {
			return err
		}
		s.lanes = append(s.lanes, lane)
	}
	return nil
}

func (s *session) noteReturn() {
	select {
	case s.returned <- struct{}{}:
	default:
	}
}

// publish sends one message and waits for what becomes of it.
func (s *session) publish(ctx context.Context, shard int, body []byte) error {
	flow := &s.flows[shard]
	if err := flow.down(); err != nil {
		return err
	}
	began := time.Now()
	select {
	case s.slots <- struct{}{}:
	case <-s.over:
		return fmt.Errorf("%w: the connection ended", order.ErrQueueDown)
	case <-ctx.Done():
		return fmt.Errorf("wait for room, nothing was sent: %w", ctx.Err())
	}
	lane := s.lanes[shard%len(s.lanes)]
	sent := time.Now()
	m, err := lane.publish(shard, body, sent, s.opt.headers(ctx))
	if err != nil {
		<-s.slots
		return err
	}
	flow.sent.Add(1)
	s.opt.observe(func(o Observer) { o.Sent(time.Since(began)) })
	settled, err := lane.wait(ctx, m)
	if settled {
		s.settle(shard, err)
	}
	s.opt.observe(func(o Observer) { o.Confirmed(time.Since(sent), err) })
	return err
}

// settle counts one message of a shard as done and gives its slot back.
func (s *session) settle(shard int, outcome error) {
	s.flows[shard].settle(outcome)
	<-s.slots
}

// serve looks after the connection until it ends or ctx does; then it waits for the confirms under way.
func (s *session) serve(ctx context.Context) error {
	defer close(s.over)
	defer s.link.drop()
	if err := s.reportFresh(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	watch := watch{shards: make([]silence, s.opt.Shards)}
	for {
		var err error
		select {
		case <-ctx.Done():
			return s.finish()
		case reason := <-s.link.ended:
			return ended(reason)
		case <-s.returned:
			err = s.redeclare(ctx)
		case watch.blocked = <-s.blocked:
			err = s.look(&watch, time.Now())
		case m := <-s.marks:
			err = s.mark(ctx, m)
		case now := <-tick.C:
			err = s.look(&watch, now)
		}
		if err != nil {
			return err
		}
	}
}

func ended(reason *amqp.Error) error {
	if reason == nil {
		return errors.New("connection closed")
	}
	return fmt.Errorf("connection ended: %w", reason)
}

// redeclare mends the topology after a message was returned, and reports queues that were gone.
func (s *session) redeclare(ctx context.Context) error {
	s.opt.Logger.Warn("a message was returned: declaring the queues again", "host", s.link.host)
	err := s.link.within(ctx, setupTimeout, func() error { return s.opt.declare(ctx, s.link) })
	if err != nil {
		return fmt.Errorf("declare again: %w", err)
	}
	return s.reportFresh(ctx)
}

func (s *session) reportFresh(ctx context.Context) error {
	if s.opt.OnFreshTopology == nil {
		return nil
	}
	var fresh []int
	err := s.link.within(ctx, setupTimeout, func() (err error) {
		fresh, err = unfed(s.link.Connection, s.opt.Shards)
		return err
	})
	for _, shard := range fresh {
		s.opt.OnFreshTopology(shard)
	}
	return err
}

func (s *session) mark(ctx context.Context, m markFed) error {
	err := s.link.within(ctx, setupTimeout, func() error { return mark(s.link.Connection, m.shard) })
	m.done <- err
	return err
}

// finish waits for what is under way, as long as a publish may take, and closes.
func (s *session) finish() error {
	stopping := "the publisher is stopping"
	for i := range s.flows {
		s.flows[i].trouble.Store(&stopping)
	}
	deadline := time.After(s.opt.PublishTimeout)
	tick := time.NewTicker(watchEvery / 10)
	defer tick.Stop()
	for len(s.slots) > 0 {
		select {
		case <-tick.C:
			s.sweep()
		case <-s.link.ended: //nolint:errcheck // the session is ending anyway
			return nil
		case <-deadline:
			return s.link.close()
		}
	}
	return s.link.close()
}

func (s *session) sweep() {
	for _, lane := range s.lanes {
		lane.sweep(s.settle)
	}
}
