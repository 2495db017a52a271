package order

import (
	"context"
)

// Tracer traces a sample of purchases across processes. For other purchases its results are empty
// and cost nothing.
type Tracer interface {
	// Mark returns the trace context of ctx as text; "" if ctx is not traced.
	Mark(ctx context.Context) string
	// Begin starts a span. The first mark that is not empty is its parent, and the others are
	// links. Without marks the span of ctx is the parent. The caller must call end.
	Begin(
		ctx context.Context, step string, marks ...string,
	) (stepCtx context.Context, end func(err error))
}

// StartSpan starts a span of a tracer that may be nil; see Tracer.Begin.
func StartSpan(
	ctx context.Context, t Tracer, step string, marks ...string,
) (context.Context, func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	return t.Begin(ctx, step, marks...)
}

// TraceMark returns the mark of a context under a tracer that may be nil; see Tracer.Mark.
func TraceMark(ctx context.Context, t Tracer) string {
	if t == nil {
		return ""
	}
	return t.Mark(ctx)
}
