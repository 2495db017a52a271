// Package memqueue is the order queue of the standalone program: in the process, without a broker.
//
// Publish returns once the consumer has acknowledged the message, which it does after the commit.
// So a 202 is durable although the queue is not: a crash loses only messages whose publishers got
// no answer.
//
// A shard keeps its order. The oldest open stream of a shard gets the deliveries; when it closes,
// the next one takes over, as with RabbitMQ's single active consumer. A publisher whose context
// ends withdraws a message that is not delivered, so the number of publishers bounds the queue. It
// has no delivery limit and no dead letters.
//
// Each open stream runs one goroutine, which ends with Close. All types are safe for concurrent
// use, except a stream, which has one user.
package memqueue
