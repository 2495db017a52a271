package rabbit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// presence is how the processes that consume know how many they are: each says every second over a fanout exchange that it is there,
// and hears the others on a queue of its own, over a connection of its own. RabbitMQ itself does not tell: of a queue with a
// single active consumer it counts none of those that wait. Who has not been heard for goneAfter does not count, so one
// that hangs or is cut off is waited for by nobody; and a process that hears nothing, not even itself, knows of nobody.
type presence struct {
	opt Options
	id  string

	mu      sync.Mutex
	heard   map[string]time.Time
	streams int // open ones; while there are any, this process is present
	cancel  context.CancelFunc
	ended   chan struct{}
}

const (
	helloEvery = time.Second
	goneAfter  = 3 * time.Second
)

// enter begins with the first stream. A nil presence is nowhere.
func (p *presence) enter() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams++; p.streams > 1 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	p.cancel, p.ended = cancel, ended
	go func() {
		defer close(ended)
		p.run(ctx)
	}()
}

// leave ends with the last stream.
func (p *presence) leave() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.streams--
	last, ended := p.streams == 0, p.ended
	if last {
		p.cancel()
	}
	p.mu.Unlock()
	if last {
		<-ended
	}
}

// count is how many processes have been heard of lately, this one among them.
func (p *presence) count(now time.Time) int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, at := range p.heard {
		if now.Sub(at) > goneAfter {
			delete(p.heard, id)
		}
	}
	return len(p.heard)
}

func (p *presence) hear(id string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard[id] = now
}

// run stays present until ctx ends, on one address after another.
func (p *presence) run(ctx context.Context) {
	pause := retries()
	for next := rand.IntN(len(p.opt.URLs)); ctx.Err() == nil; next++ {
		err := p.meet(ctx, p.opt.URLs[next%len(p.opt.URLs)], pause.Reset)
		if ctx.Err() == nil {
			p.opt.Logger.Debug("out of touch with the other consumers", "err", err)
			sleep(ctx, pause.NextBackOff())
		}
	}
}

// meet says and hears hello on one connection until it or ctx ends.
func (p *presence) meet(ctx context.Context, address string, met func()) error {
	l, err := dial(ctx, address, p.opt.Name)
	if err != nil {
		return err
	}
	defer l.drop()
	var ch *amqp.Channel
	var hellos <-chan amqp.Delivery
	err = l.within(ctx, setupTimeout, func() (err error) {
		ch, hellos, err = listen(l.Connection)
		return err
	})
	if err != nil {
		return fmt.Errorf("meet on %s: %w", l.host, err)
	}
	met()
	return p.talk(ctx, ch, hellos)
}

// listen opens an ear: a queue that goes with its connection.
func listen(c *amqp.Connection) (*amqp.Channel, <-chan amqp.Delivery, error) {
	ch, err := c.Channel()
	if err != nil {
		return nil, nil, fmt.Errorf("open channel: %w", err)
	}
	if err := ch.ExchangeDeclare(consumersName, amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
		return nil, nil, fmt.Errorf("declare exchange %s: %w", consumersName, err)
	}
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("declare an ear: %w", err)
	}
	if err := ch.QueueBind(q.Name, "", consumersName, false, nil); err != nil {
		return nil, nil, fmt.Errorf("bind an ear: %w", err)
	}
	hellos, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	return ch, hellos, err
}

func (p *presence) talk(ctx context.Context, ch *amqp.Channel, hellos <-chan amqp.Delivery) error {
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		// The socket takes it without waiting, and an ear that overflows in a broker is the broker's to bound.
		if err := ch.PublishWithContext(ctx, consumersName, "", false, false, amqp.Publishing{AppId: p.id, Expiration: "3000"}); err != nil {
			return err
		}
		for waiting := true; waiting; {
			select {
			case d, ok := <-hellos:
				if !ok {
					return errors.New("the ear was closed")
				}
				last = time.Now()
				p.hear(d.AppId, last)
			case <-tick.C:
				waiting = false
			case <-ctx.Done():
				return nil
			}
		}
		if silent := time.Since(last); silent > lookTimeout {
			return fmt.Errorf("nothing heard for %v", silent)
		}
	}
}
