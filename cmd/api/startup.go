package main

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/app"
)

// connectTimeout bounds the wait for RabbitMQ at startup. Then the API serves without it.
const connectTimeout = 3 * time.Second

// afterConnecting runs a worker when the queue is up, or after the timeout. Without the wait, only
// Redis would hold the orders of a node's first moments, as if RabbitMQ were down. Meanwhile the
// kernel keeps new connections in the listener's backlog.
func afterConnecting(queue interface{ Up() bool }, timeout time.Duration, w app.Worker) app.Worker {
	return app.WorkerFunc(func(ctx context.Context) error {
		deadline := time.After(timeout)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for !queue.Up() {
			select {
			case <-tick.C:
				continue
			case <-deadline:
			case <-ctx.Done():
			}
			break
		}
		return w.Run(ctx)
	})
}
