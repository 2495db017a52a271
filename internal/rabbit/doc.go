// Package rabbit is the order queue on RabbitMQ: it implements order.Publisher and order.Source, and is the only package
// that speaks AMQP.
//
// Topology, declared again by every connection: the direct exchange seckill.orders; a quorum queue seckill.orders.<n> per
// shard with a single active consumer, bound by the shard's number; the fanout exchange seckill.dead with the
// quorum queue seckill.dead, where messages go that were handed out more often than the delivery limit (a backstop against
// a consumer that dies of a message; trouble of the infrastructure is never nacked); and the fanout exchange seckill.consumers,
// on which the processes that consume hear of each other and so share the shards out (balance, ADR 52).
//
// What it promises: Publish returns nil only when the broker has confirmed a persistent message that was routed to a queue.
// A message that was returned is an error, and the topology is declared again. While the broker is known to be away, has
// raised its memory or disk alarm, or has confirmed nothing for a while, Publish fails at once with order.ErrQueueDown.
// Nothing ever waits for a broker without a limit: Publish ends with its context, everything else with a timeout of its own.
//
// Life: Publisher.Run connects, and again for ever, until its context ends; then it waits for the confirms under way. A
// stream has a connection of its own, ends with it, and is opened again by its user. Publishing and consuming are on
// separate connections, for a broker in need stops reading from those that publish. On a cluster each connection takes the next
// address when its node ends it, confirms nothing or does not answer; one shard's trouble is not the others'.
//
// Everything is safe for concurrent use but for a stream, which has one user.
// It imports internal/order, amqp091-go and cenkalti/backoff.
package rabbit
