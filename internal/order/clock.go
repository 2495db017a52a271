package order

import (
	"context"
	"time"
)

// Clock is the database's clock. It dates rows and decides which are due, because the clocks of
// hosts differ.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}
