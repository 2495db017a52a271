package webhook

import (
	"context"
	"sync"
)

// Slots and AttemptTimeout are those of a dispatcher.
const (
	Slots          = slots
	AttemptTimeout = attemptTimeout
)

// Body is the body of a request.
type Body = body

// CountDead counts dead deliveries once.
func (d *Dispatcher) CountDead(ctx context.Context) { d.countDead(ctx) }

// Round serves every endpoint that is due, and returns when all are served.
func (d *Dispatcher) Round(ctx context.Context) {
	var g sync.WaitGroup
	for _, e := range d.claim(ctx, slots) {
		g.Go(func() {
			d.serve(ctx, e)
			d.end(e)
		})
	}
	g.Wait()
}
