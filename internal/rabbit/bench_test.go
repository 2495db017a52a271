//go:build unix

package rabbit_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/must"
)

// BenchmarkPublish measures confirmed publishes of 1 KB to one quorum queue, by the number of
// concurrent callers. The floor benchmark beside each one uses a bare channel of the library, where
// every caller waits for its own confirm. Both report this process's processor time, which varies
// less with the machine's other load than the rate does.
func BenchmarkPublish(b *testing.B) {
	broker := env.RabbitMQ(b)
	body := make([]byte, 1024)
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			p := runPublisher(b, rabbit.Options{URLs: []string{broker.NewVHost(b)}})
			measure(b, callers,
				func(ctx context.Context) error { return p.Publish(ctx, goods, body) })
		})
		b.Run(fmt.Sprintf("callers=%d/floor", callers), func(b *testing.B) {
			measure(b, callers, bare(b, broker.NewVHost(b), body))
		})
	}
}

func measure(b *testing.B, callers int, publish func(context.Context) error) {
	ctx, cancel := context.WithTimeout(b.Context(), timeout)
	defer cancel()
	var taken atomic.Int64
	var group sync.WaitGroup
	began := processorTime(b)
	b.ResetTimer()
	for range callers {
		group.Go(func() {
			for taken.Add(1) <= int64(b.N) {
				if err := publish(ctx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64((processorTime(b)-began).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "confirmed/s")
}

// processorTime returns the processor time that this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// bare returns a publish function that uses only amqp091-go.
func bare(b *testing.B, url string, body []byte) func(context.Context) error {
	runPublisher(b, rabbit.Options{URLs: []string{url}}) // declares the queue
	conn := must.Get(amqp.Dial(url))(b)
	b.Cleanup(func() { _ = conn.Close() })
	ch := must.Get(conn.Channel())(b)
	require.NoError(b, ch.Confirm(false))
	return func(ctx context.Context) error {
		message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
		confirm, err := ch.PublishWithDeferredConfirmWithContext(
			ctx, "seckill.orders", "0", true, false, message)
		if err != nil {
			return err
		}
		_, err = confirm.WaitContext(ctx)
		return err
	}
}
