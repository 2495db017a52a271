// Package memqueue is the order queue of the standalone program: in the process, without a broker.
//
// It keeps the promise of order.Publisher in its own way: "confirmed" means that the consumer has acknowledged the
// message, which it does once the orders are committed. So a 202 is durable although the queue is not: what was
// under way at a crash was confirmed to nobody, and nobody was told of an order.
//
// Shards keep their order; of the streams opened on one shard, the oldest gets the deliveries and the next takes over when
// it is closed, as with RabbitMQ's single active consumer. It is bounded: a full shard makes Publish wait, until its
// context ends. There are no dead letters: nothing here gives a message up.
//
// Each open stream runs one goroutine, which ends with Close. Everything is safe for concurrent use but for a stream,
// which has one user. It imports the standard library and internal/order.
package memqueue
