package order_test

import "context"

// marked is a queue that can be marked as fed.
type marked struct{ *flaky }

func (*marked) MarkRepublished(context.Context, int) error { return nil }
