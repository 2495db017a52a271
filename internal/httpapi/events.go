package httpapi

import (
	"context"
	"math"

	"flashsale.dev/seckill/internal/event"
)

// listEvents is GET /admin/events. The cursor is the id of the last item, so that a program need
// keep only the last id that it has handled.
func (a *api) listEvents(ctx context.Context, r *request) (response, error) {
	limit, after := r.limit(), r.IntOr("after", 0, 0, math.MaxInt64)
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	items, err := a.Events.List(ctx, r.actor, after, limit+1)
	if err != nil {
		return response{}, err
	}
	l := list[event.Item]{Items: items[:min(limit, len(items))]}
	if len(items) > limit {
		l.NextCursor = &items[limit-1].ID
	}
	return ok(l), nil
}
