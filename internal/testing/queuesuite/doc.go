// Package queuesuite tests the contract of order.Publisher and order.Source. Both queues pass it:
// package rabbit on a real broker, and package memqueue.
//
// The queues confirm a publish at different times. RabbitMQ confirms a message that it has stored.
// Package memqueue confirms a message that the consumer has acknowledged. So each test publishes
// from goroutines and consumes meanwhile.
package queuesuite
