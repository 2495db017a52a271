package rabbit

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// lookEvery is how often a stream asks its broker about its queue; a broker that has not answered after lookTimeout is given up.
// (AMQP's heartbeats take three times as long to notice a node that sleeps.)
const (
	lookEvery   = time.Second
	lookTimeout = 5 * time.Second
)

// look looks after a stream until it ends: that its broker answers, and that others get their share.
func (st *stream) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-st.done:
			return
		case <-tick.C:
		}
		if !st.answers() {
			st.link.drop() // run ends with it
			return
		}
		if others := st.present.count(time.Now()); st.share.tooMany(st, others, time.Now()) {
			st.opt.Logger.Info("giving a shard to another consumer", "queue", st.queue, "consumers", others)
			close(st.yield)
			return
		}
	}
}

// answers tells whether the broker still says something, be it that it has no such queue.
func (st *stream) answers() bool {
	err := st.link.within(context.Background(), lookTimeout, func() error {
		return onChannel(st.link.Connection, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(st.queue, true, false, false, false, nil)
			return err
		})
	})
	var refused *amqp.Error
	return err == nil || errors.As(err, &refused) && refused.Server && !errors.Is(err, amqp.ErrClosed)
}
