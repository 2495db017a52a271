package rabbit_test

import (
	"testing"

	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/queuesuite"
)

// TestQueue_KeepsTheContract runs the tests that every queue must pass.
func TestQueue_KeepsTheContract(t *testing.T) {
	broker := env.RabbitMQ(t)
	queuesuite.Run(t, func(t *testing.T) queuesuite.Queue {
		opt := rabbit.Options{URLs: []string{broker.NewVHost(t)}, Shards: 4}
		return queuesuite.Queue{Publisher: runPublisher(t, opt), Source: openSource(t, opt)}
	})
}
