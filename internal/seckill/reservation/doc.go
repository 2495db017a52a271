// Package reservation defines the data of one purchase in Redis. It has the random path that
// permits one attempt, the reservation, the script's verdict on it, and the order line. The order
// line is also the entry in RabbitMQ's messages.
//
// The package uses neither Redis nor HTTP.
package reservation
