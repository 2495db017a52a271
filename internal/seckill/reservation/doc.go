// Package reservation defines the data of one purchase in Redis. It has the reservation, the
// script's verdict on it, and the order line, which is also the entry in RabbitMQ's messages.
package reservation
