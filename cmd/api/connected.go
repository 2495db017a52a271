package main

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/app"
)

// connectPatience is how long a node that starts waits for RabbitMQ before it takes buyers without.
const connectPatience = 3 * time.Second

// onceConnected runs a worker once the queue is up, or has had time enough to be. A node that took buyers in the moments
// before its first connection would promise on Redis' word alone, as if RabbitMQ were down; callers wait in the
// listener's backlog instead.
func onceConnected(queue interface{ Up() bool }, patience time.Duration, w app.Worker) app.Worker {
	return app.WorkerFunc(func(ctx context.Context) error {
		deadline := time.After(patience)
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
