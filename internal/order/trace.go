package order

import (
	"context"
)

// Tracer follows purchases from program to program. What is followed is few of many; for the others its answers are empty
// and cost nothing.
type Tracer interface {
	// Mark is the text by which others go on from what a context is part of; "" where it is not followed.
	Mark(ctx context.Context) string
	// Begin begins a step. With marks it goes on from those that are not empty, whatever the context is part of: the first
	// is its parent and the others, who share the step, are linked. With none it is a part of what the context is part of. The
	// context returned is the step's, and end must be called.
	Begin(ctx context.Context, step string, marks ...string) (stepCtx context.Context, end func(err error))
}

// StartSpan begins a step of a tracer that may be nil; see Tracer.Begin.
func StartSpan(ctx context.Context, t Tracer, step string, marks ...string) (context.Context, func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	return t.Begin(ctx, step, marks...)
}

// TraceMark is the mark of a context under a tracer that may be nil; see Tracer.Mark.
func TraceMark(ctx context.Context, t Tracer) string {
	if t == nil {
		return ""
	}
	return t.Mark(ctx)
}
