// Package purchase takes purchases: it reserves units in Redis, publishes the reservation to
// RabbitMQ, and answers with an order number.
//
// Service.Place returns an order number after Redis holds the reservation in its outbox and
// RabbitMQ has confirmed the message. While RabbitMQ is down, the outbox alone holds the
// reservation until the relay publishes it. The same path always answers with the same order
// number, so a buyer may repeat a request whose outcome is unknown.
//
// Service.CheckSoldOut refuses most purchases of a sold-out sale, at a lower cost. It takes
// nothing.
//
// Concurrent purchases of one goods share one script call, one message and one confirm. A call
// waits at most 10 ms for the confirm of the purchases before it. A Service is safe for concurrent
// use and owns no background worker.
package purchase
