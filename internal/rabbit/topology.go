package rabbit

import (
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names in the broker.
const (
	ordersName = "seckill.orders" // the exchange, and the prefix of its queues
	deadName   = "seckill.dead"   // the exchange and the queue of dead letters
	markPrefix = "seckill.fed"    // of the marks; the name is that of earlier releases
)

func queueName(shard int) string { return ordersName + "." + strconv.Itoa(shard) }

// markName names an exchange without bindings. It exists if all pending orders of the shard have
// been published to the present queue. The broker keeps and loses it together with the queue.
func markName(shard int) string { return markPrefix + "." + strconv.Itoa(shard) }

// orderQueue returns the arguments of a shard's queue. They never change between releases, because
// RabbitMQ refuses the declaration of an existing queue with other arguments. At-least-once dead
// lettering needs reject-publish.
func orderQueue(deliveryLimit int) amqp.Table {
	return amqp.Table{
		"x-queue-type":             "quorum",
		"x-single-active-consumer": true,
		"x-delivery-limit":         deliveryLimit,
		"x-dead-letter-exchange":   deadName,
		"x-dead-letter-strategy":   "at-least-once",
		"x-overflow":               "reject-publish",
	}
}

// declareDead declares the exchange and the queue of dead letters.
func (c *connection) declareDead() error {
	exists, err := c.queueExists(deadName)
	if err != nil {
		return err
	}
	err = c.onChannel(func(ch *amqp.Channel) error {
		if err := declareExchange(ch, deadName, amqp.ExchangeFanout); err != nil {
			return err
		}
		return declareQueue(ch, deadName, amqp.Table{"x-queue-type": "quorum"})
	})
	if err != nil {
		return err
	}
	return c.bind(deadName, "", deadName, exists)
}

// declareShard declares one shard's queue, and reports whether it was there. Before it makes a
// missing queue, it deletes the shard's mark. A crash between the two leaves a missing queue, and
// never a new queue with an old mark.
func (c *connection) declareShard(shard, deliveryLimit int) (existed bool, err error) {
	name := queueName(shard)
	exists, err := c.queueExists(name)
	if err != nil {
		return false, err
	}
	err = c.onChannel(func(ch *amqp.Channel) error {
		if !exists {
			if err := ch.ExchangeDelete(markName(shard), false, false); err != nil {
				return wrap(err, "delete the mark of %s", name)
			}
		}
		if err := declareExchange(ch, ordersName, amqp.ExchangeDirect); err != nil {
			return err
		}
		return declareQueue(ch, name, orderQueue(deliveryLimit))
	})
	if err != nil {
		return exists, err
	}
	return exists, c.bind(name, strconv.Itoa(shard), ordersName, exists)
}

// declareExchange declares a durable exchange.
func declareExchange(ch *amqp.Channel, name, kind string) error {
	err := ch.ExchangeDeclare(name, kind, true, false, false, false, nil)
	return wrap(err, "declare exchange %s", name)
}

// declareQueue declares a durable queue that all connections share.
func declareQueue(ch *amqp.Channel, name string, args amqp.Table) error {
	_, err := ch.QueueDeclare(name, true, false, false, false, args)
	return wrap(err, "declare queue %s", name)
}

// queueExists checks for a queue without creating it. The connected node answers from its own
// metadata.
func (c *connection) queueExists(name string) (bool, error) {
	exists, err := c.exists(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
	return exists, wrap(err, "ask for queue %s", name)
}

// countConsumers returns the number of a queue's active consumers. It is 0 if there is no such
// queue, and if the queue's leader does not answer the connected node.
func (c *connection) countConsumers(name string) (consumers int, err error) {
	_, err = c.exists(func(ch *amqp.Channel) error {
		queue, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		consumers = queue.Consumers
		return err
	})
	return consumers, wrap(err, "count the consumers of %s", name)
}

// bind binds a queue. A binding is a transaction over all nodes of a cluster. It blocks while one
// of them is silent and not yet declared down (net_ticktime, a minute by default). A queue that
// exists is nearly always bound, so bind does not wait for an answer then. If the binding is
// missing, the broker returns messages until it has made it.
func (c *connection) bind(queue, key, exchange string, exists bool) error {
	if !exists {
		return c.onChannel(func(ch *amqp.Channel) error {
			return bind(ch, queue, key, exchange, false)
		})
	}
	if err := c.keep(&c.noWait); err != nil {
		return err
	}
	return bind(c.noWait, queue, key, exchange, true)
}

func bind(ch *amqp.Channel, queue, key, exchange string, noWait bool) error {
	return wrap(ch.QueueBind(queue, key, exchange, noWait, nil), "bind queue %s", queue)
}

// unmarked returns the shards without a mark.
func (c *connection) unmarked(shards int) ([]int, error) {
	var list []int
	for shard := range shards {
		marked, err := c.marked(shard)
		if err != nil {
			return nil, err
		}
		if !marked {
			list = append(list, shard)
		}
	}
	return list, nil
}

// marked reports whether a shard has a mark.
func (c *connection) marked(shard int) (bool, error) {
	marked, err := c.exists(func(ch *amqp.Channel) error {
		name := markName(shard)
		return ch.ExchangeDeclarePassive(name, amqp.ExchangeFanout, true, false, false, false, nil)
	})
	return marked, wrap(err, "ask for the mark of shard %d", shard)
}

// mark declares a shard's mark.
func (c *connection) mark(shard int) error {
	return c.onChannel(func(ch *amqp.Channel) error {
		return declareExchange(ch, markName(shard), amqp.ExchangeFanout)
	})
}
