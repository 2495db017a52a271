package order_test

import "context"

// markedQueue is a queue that the republisher can mark as republished.
type markedQueue struct{ *flakyQueue }

func (*markedQueue) MarkRepublished(context.Context, int) error { return nil }
