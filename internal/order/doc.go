// Package order defines an order, its states, the messages that transport it through RabbitMQ, and
// the ports that several of its services share.
//
// An order lives in this sequence: queued → created → paid, cancelled or expired; or queued →
// failed. "Queued" means that Redis holds the reservation and MySQL has no row yet. Every later
// state is a committed row in MySQL.
//
// The services that move an order from state to state are subpackages, one for each step:
//
//	purchase      takes a purchase: reserve in Redis, publish to RabbitMQ, answer
//	outbox        publishes reservations that RabbitMQ has not confirmed
//	orderwriter   consumes messages and writes orders to MySQL in batches
//	query         reads the status of orders and notifies subscribers of changes
//	payment       pays, cancels, expires and refunds orders
//	inventory     serves merchants' changes of sales and releases units back to Redis
//	deadletter    lists, requeues and discards orders that could not be written
//	reconcile     compares Redis with MySQL by order number and repairs differences
//	rebuild       builds a sale in Redis from MySQL under a new epoch
//	stats         counts orders and refusals for merchants
//	shipping      keeps delivery addresses and shipments
//	retention     deletes rows that nothing needs any more
//	livesales     lists the sales that the background workers serve
//
// The package imports no adapter, and neither SQL nor Redis nor AMQP nor HTTP.
package order
