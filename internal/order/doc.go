// Package order is the way of an order: from a reservation in Redis through RabbitMQ into MySQL, and on to paid,
// cancelled or expired.
//
// What it promises: a number that was answered "queued" ends as a row, written once, whatever order or grouping the
// messages come in and however often; "created" is said only of what MySQL has committed; units that come back come
// back once. The steps are commit, then settle in Redis, then acknowledge, and each may be repeated.
//
// It knows no SQL, Redis or AMQP: stores, shelves and queues are small interfaces stated where they are used.
// It imports seckill (never the reverse), ordersn and group.
package order
