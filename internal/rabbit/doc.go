// Package rabbit is the order queue on RabbitMQ. It implements order.Publisher and order.Source,
// and it is the only package that uses AMQP.
//
// Every connection declares the topology. It has the direct exchange seckill.orders, and the fanout
// exchange and quorum queue seckill.dead. Each shard has a quorum queue seckill.orders.<n> with a
// single active consumer, bound by the shard's number. RabbitMQ moves a message to seckill.dead
// after more deliveries than the delivery limit allows. No consumer of this package nacks a
// message.
//
// Guarantees: Publish returns nil only after the broker has confirmed a persistent message that it
// routed to a queue. A returned message is an error, and the publisher declares the topology again.
// Publish fails at once with order.ErrQueueDown while the broker is disconnected, blocked by an
// alarm, or silent. No call waits without a limit: Publish ends with its context, and every other
// call has a timeout of its own.
//
// Consumers: each process consumes every shard. RabbitMQ delivers a queue's messages to one of its
// consumers and activates the next one when that one's connection ends. A process with more shards
// than its share hands some over (see shares). All consumers have the same priority, because
// RabbitMQ 4 may activate dead ones otherwise (see samePriority).
//
// Life cycle: Publisher.Run reconnects until its context ends, then waits for the confirms in
// flight. A stream has a connection of its own and ends with it; its user opens it again.
// Publishers and consumers never share a connection, because a broker under pressure stops reading
// from those that publish. On a cluster, a connection that fails is followed by one to the next
// address.
//
// All types are safe for concurrent use, except a stream, which has one user.
package rabbit
