package rabbit_test

import (
	"testing"

	"flashsale.dev/seckill/internal/order/queuetest"
	"flashsale.dev/seckill/internal/rabbit"
)

func TestContract(t *testing.T) {
	broker := env.RabbitMQ(t)
	queuetest.Run(t, func(t *testing.T) queuetest.Queue {
		opt := rabbit.Options{URLs: []string{broker.NewVHost(t)}, Shards: 4}
		return queuetest.Queue{Publisher: runPublisher(t, opt), Source: openSource(t, opt)}
	})
}
