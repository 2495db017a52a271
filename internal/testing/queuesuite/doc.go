// Package queuesuite tests the contract of order.Publisher and order.Source. Both queues pass it:
// package rabbit on a real broker, and package memqueue.
//
// The queues differ in when a publish is confirmed: RabbitMQ confirms what it has stored, memqueue
// what the consumer has acknowledged. So each test publishes from goroutines and consumes
// meanwhile.
package queuesuite
