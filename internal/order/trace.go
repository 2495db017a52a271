package order

import (
	"context"

	"flashsale.dev/seckill/internal/seckill"
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

// Traced has a tracer follow purchases; call it before the desk is used. nil changes nothing, here and below.
func (d *Desk) Traced(t Tracer) *Desk {
	if t != nil {
		d.tracer = t
	}
	return d
}

// Traced has a tracer follow batches; call it before the consumer runs.
func (c *Consumer) Traced(t Tracer) *Consumer {
	if t != nil {
		c.tracer = t
	}
	return c
}

// Traced has a tracer follow transactions; call it before the writer is used.
func (w *Writer) Traced(t Tracer) *Writer {
	if t != nil {
		w.tracer = t
	}
	return w
}

// untraced is the tracer of whoever has none.
type untraced struct{}

func (untraced) Mark(context.Context) string { return "" }

func (untraced) Begin(ctx context.Context, _ string, _ ...string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// wish is a reservation that waits for its trip.
type wish struct {
	seckill.Reservation
	mark string // of the buyer's request
}

// apart parts what a trip asks for from what follows it.
func apart(wishes []wish) (rs []seckill.Reservation, marks []string) {
	rs, marks = make([]seckill.Reservation, len(wishes)), make([]string, len(wishes))
	for i, w := range wishes {
		rs[i], marks[i] = w.Reservation, w.mark
	}
	return rs, marks
}

// marksOf are the marks of a batch's messages.
func marksOf(batch []received) []string {
	marks := make([]string, len(batch))
	for i, r := range batch {
		marks[i] = r.TraceParent
	}
	return marks
}
