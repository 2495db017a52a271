package event

import (
	"context"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

// Store reads events that have a position: at most limit, by position.
type Store interface {
	Events(ctx context.Context, f Filter, limit int) ([]Event, error)
}

// Feed lists events. It is safe for concurrent use.
type Feed struct {
	Store    Store
	Currency string // of sales without one of their own
}

// List returns at most limit items with ids above after, in ascending order: of the merchant's own
// sales, or of all sales for an operator. The error is Unavailable.
func (f *Feed) List(
	ctx context.Context, by seckill.Actor, after int64, limit int,
) ([]Item, error) {
	return f.Items(ctx, Filter{MerchantID: by.ManagedMerchant(), After: after}, limit)
}

// Items returns the items of at most limit events that a filter selects, in ascending order. The
// error is Unavailable.
func (f *Feed) Items(ctx context.Context, filter Filter, limit int) ([]Item, error) {
	events, err := f.Store.Events(ctx, filter, limit)
	if err != nil {
		return nil, apierror.NewUnavailable("the events can't be listed", err)
	}
	items := make([]Item, len(events))
	for i, e := range events {
		items[i] = newItem(e, f.Currency)
	}
	return items, nil
}
