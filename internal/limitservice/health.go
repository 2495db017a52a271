package limitservice

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/redisstore"
)

// Health reports the node as ready until it stops. The state of Redis does not count, because each
// rule's onError decides what happens without Redis.
type Health struct {
	client   redis.UniversalClient
	draining atomic.Bool
}

// NewHealth returns the health of a node whose limiters are in the client's Redis.
func NewHealth(client redis.UniversalClient) *Health { return &Health{client: client} }

// Drain makes the node not ready until its process ends.
func (h *Health) Drain() { h.draining.Store(true) }

const pingDeadline = 800 * time.Millisecond

// Ready reports whether the node is ready, with the state of Redis. It is an httpapi.Readiness.
func (h *Health) Ready(ctx context.Context) (bool, map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, pingDeadline)
	defer cancel()
	states := map[string]string{
		"redis": cmp.Or(cause.Of(redisstore.CheckServer(ctx, h.client)), "ok"),
	}
	if h.draining.Load() {
		states["node"] = "draining"
	}
	return !h.draining.Load(), states
}
