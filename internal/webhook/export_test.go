package webhook

import "context"

// Body is the body of a request.
type Body = body

// Claim is one poll of the dispatcher.
func (d *Dispatcher) Claim(ctx context.Context) []Endpoint { return d.claim(ctx, slots) }

// Serve is one turn of an endpoint.
func (d *Dispatcher) Serve(ctx context.Context, e Endpoint) { d.serve(ctx, e) }
