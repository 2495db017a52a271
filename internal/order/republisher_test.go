package order_test

import "context"

// markedQueue is a queue that can be markedQueue as fed.
type markedQueue struct{ *flakyQueue }

func (*markedQueue) MarkRepublished(context.Context, int) error { return nil }
