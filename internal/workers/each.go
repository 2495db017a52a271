package workers

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// concurrent is how many items Each serves at a time: a quarter of a process' connections to MySQL.
// The writers of four busy shards may use all of them, and other callers then wait for one.
const concurrent = 8

// Each runs work for each item, for several at a time, and returns when all have ended. An item
// whose server does not answer then delays few others. Each starts no more work after ctx has
// ended.
func Each[T any](ctx context.Context, items []T, work func(context.Context, T)) {
	var g errgroup.Group
	g.SetLimit(concurrent)
	for _, item := range items {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			work(ctx, item)
			return nil
		})
	}
	_ = g.Wait() // no work returns an error
}
