package rabbit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// watchEvery is how often a session looks whether confirms still come.
const watchEvery = 100 * time.Millisecond

// giveUpAfter stalls the connection is made anew.
const giveUpAfter = 5

// session is one connection of a publisher from its topology to its end.
type session struct {
	opt      Options
	link     *link
	lanes    []*lane       // a shard keeps to one, so that its messages never overtake one another
	slots    chan struct{} // one token per message under way
	settled  atomic.Uint64 // messages whose outcome has come
	trouble  atomic.Pointer[string]
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
	}
	err = l.within(ctx, setupTimeout, s.setUp)
	if err != nil {
		l.drop()
		return nil, fmt.Errorf("set up %s: %w", l.host, err)
	}
	return s, nil
}

func (s *session) setUp() error {
	if err := declare(s.link.Connection, s.opt); err != nil {
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
	if why := s.trouble.Load(); why != nil {
		return fmt.Errorf("%w: %s", order.ErrQueueDown, *why)
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.over:
		return fmt.Errorf("%w: the connection ended", order.ErrQueueDown)
	case <-ctx.Done():
		return fmt.Errorf("wait for room, nothing was sent: %w", ctx.Err())
	}
	lane := s.lanes[shard%len(s.lanes)]
	m, err := lane.publish(shard, body, time.Now())
	if err != nil {
		<-s.slots
		return err
	}
	settled, err := lane.wait(ctx, m)
	if settled {
		s.settle(1)
	}
	return err
}

func (s *session) settle(n int) {
	s.settled.Add(uint64(n))
	for range n {
		<-s.slots
	}
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
	watch := watch{since: time.Now()}
	for {
		var err error
		select {
		case <-ctx.Done():
			return s.finish()
		case reason := <-s.link.ended:
			return ended(reason)
		case <-s.returned:
			err = s.redeclare(ctx)
		case b := <-s.blocked:
			watch.blocked = b
		case m := <-s.marks:
			err = s.mark(ctx, m)
		case now := <-tick.C:
			err = s.look(&watch, now)
		}
		if err != nil {
			return err
		}
		s.trouble.Store(watch.trouble(s.opt.StallAfter))
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
	err := s.link.within(ctx, setupTimeout, func() error { return declare(s.link.Connection, s.opt) })
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
	s.trouble.Store(&stopping)
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
		s.settle(lane.sweep())
	}
}
