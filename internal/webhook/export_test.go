package webhook

import (
	"context"
	"sync"
)

// Slots is how many endpoints a dispatcher serves at a time.
const Slots = slots

// Body is the body of a request.
type Body = body

// CountDead counts dead deliveries once.
func (d *Dispatcher) CountDead(ctx context.Context) { d.countDead(ctx) }

// Claim claims endpoints that are due, as many as a dispatcher has slots, and serves none.
func (d *Dispatcher) Claim(ctx context.Context) []Endpoint { return d.claim(ctx, slots) }

// Round serves every endpoint that is due, and returns when all are served.
func (d *Dispatcher) Round(ctx context.Context) {
	var g sync.WaitGroup
	for _, e := range d.Claim(ctx) {
		g.Go(func() {
			d.serve(ctx, e)
			d.end(e)
		})
	}
	g.Wait()
}
