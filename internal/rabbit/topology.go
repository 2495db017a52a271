package rabbit

import (
	"errors"
	"fmt"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names in the broker.
const (
	ordersName = "seckill.orders" // the exchange, and the beginning of its queues' names
	deadName   = "seckill.dead"   // exchange and queue
	fedName    = "seckill.fed"    // the beginning of the marks' names

	consumersName = "seckill.consumers" // exchange on which consumers hear of each other
)

func queueName(shard int) string { return ordersName + "." + strconv.Itoa(shard) }

// markName is an exchange without bindings, which carries nothing and costs nothing: that it exists says that the shard's
// queue has been fed. It lives and dies with the broker's data, as the queue does.
func markName(shard int) string { return fedName + "." + strconv.Itoa(shard) }

func quorum(more amqp.Table) amqp.Table {
	args := amqp.Table{"x-queue-type": "quorum"}
	for k, v := range more {
		args[k] = v
	}
	return args
}

// orderQueue's arguments. At-least-once dead lettering needs reject-publish.
func orderQueue(deliveryLimit int) amqp.Table {
	return quorum(amqp.Table{
		"x-single-active-consumer": true,
		"x-delivery-limit":         deliveryLimit,
		"x-dead-letter-exchange":   deadName,
		"x-dead-letter-strategy":   "at-least-once",
		"x-overflow":               "reject-publish",
	})
}

// declareDead makes where dead letters go.
func declareDead(l *link) error {
	exists, err := queueExists(l.Connection, deadName)
	if err != nil {
		return err
	}
	err = onChannel(l.Connection, func(ch *amqp.Channel) error {
		if err := ch.ExchangeDeclare(deadName, amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
			return fmt.Errorf("declare exchange %s: %w", deadName, err)
		}
		if _, err := ch.QueueDeclare(deadName, true, false, false, false, quorum(nil)); err != nil {
			return fmt.Errorf("declare queue %s: %w", deadName, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return bind(l, deadName, "", deadName, exists)
}

// declareShard makes one shard's queue. A queue that was not there is new, whatever its mark says, so the mark goes first: a crash
// between the two leaves a queue that is still missing, never a new queue with an old mark.
func declareShard(l *link, shard, deliveryLimit int) error {
	name := queueName(shard)
	exists, err := queueExists(l.Connection, name)
	if err != nil {
		return err
	}
	err = onChannel(l.Connection, func(ch *amqp.Channel) error {
		if !exists {
			if err := ch.ExchangeDelete(markName(shard), false, false); err != nil {
				return fmt.Errorf("delete mark of %s: %w", name, err)
			}
		}
		if err := ch.ExchangeDeclare(ordersName, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
			return fmt.Errorf("declare exchange %s: %w", ordersName, err)
		}
		if _, err := ch.QueueDeclare(name, true, false, false, false, orderQueue(deliveryLimit)); err != nil {
			return fmt.Errorf("declare queue %s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return bind(l, name, strconv.Itoa(shard), ordersName, exists)
}

func queueExists(c *amqp.Connection, name string) (bool, error) {
	exists, err := found(c, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for queue %s: %w", name, err)
	}
	return exists, nil
}

// bind binds a queue. That is a transaction over all nodes of a cluster, which hangs while one of them is silent and not yet given up
// (net_ticktime: a minute by default), unlike the declaration of what exists. A queue that was there is nearly always bound
// already, so its binding is asked for on a channel that nobody waits for: one that was missing all the same shows
// in returned messages until it is made.
func bind(l *link, queue, key, exchange string, exists bool) error {
	if !exists {
		return onChannel(l.Connection, func(ch *amqp.Channel) error { return bindOn(ch, queue, key, exchange, false) })
	}
	if l.later == nil || l.later.IsClosed() {
		var err error
		if l.later, err = l.Channel(); err != nil {
			return fmt.Errorf("open channel: %w", err)
		}
	}
	return bindOn(l.later, queue, key, exchange, true)
}

func bindOn(ch *amqp.Channel, queue, key, exchange string, noWait bool) error {
	if err := ch.QueueBind(queue, key, exchange, noWait, nil); err != nil {
		return fmt.Errorf("bind queue %s: %w", queue, err)
	}
	return nil
}

// unfed returns the shards whose queues have not been marked as fed.
func unfed(c *amqp.Connection, shards int) ([]int, error) {
	var fresh []int
	for shard := range shards {
		marked, err := found(c, func(ch *amqp.Channel) error {
			return ch.ExchangeDeclarePassive(markName(shard), amqp.ExchangeFanout, true, false, false, false, nil)
		})
		if err != nil {
			return nil, fmt.Errorf("look for the mark of shard %d: %w", shard, err)
		}
		if !marked {
			fresh = append(fresh, shard)
		}
	}
	return fresh, nil
}

func mark(c *amqp.Connection, shard int) error {
	return onChannel(c, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclare(markName(shard), amqp.ExchangeFanout, true, false, false, false, nil)
	})
}

// found makes a passive declaration: NOT_FOUND, which costs the channel, is an answer.
func found(c *amqp.Connection, passive func(*amqp.Channel) error) (bool, error) {
	err := onChannel(c, passive)
	var refused *amqp.Error
	if errors.As(err, &refused) && refused.Code == amqp.NotFound {
		return false, nil
	}
	return err == nil, err
}

// onChannel runs calls on a channel of their own. Whoever calls bounds them: see link.within.
func onChannel(c *amqp.Connection, calls func(*amqp.Channel) error) error {
	ch, err := c.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	return errors.Join(calls(ch), ch.Close())
}
