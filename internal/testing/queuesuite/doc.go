// Package queuesuite is the contract of order.Publisher and order.Source as tests, which every queue passes: RabbitMQ
// on a real broker, and the in-process one.
//
// It leaves open what the queues may differ in: when a publish is confirmed (by the broker as soon as it is kept, in the process
// when it is acknowledged). So each test publishes from goroutines and consumes meanwhile.
package queuesuite
