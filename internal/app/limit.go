package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/ratelimit"
)

// Limits are the rate limiter of a node: its rules, the gate that applies them and the watch over their changes.
type Limits struct {
	Book  *ratelimit.Rulebook
	Gate  *ratelimit.Gate
	Admin *ratelimit.Admin
	sync  *ratelimit.Sync
	log   *slog.Logger
}

// NewLimits reads the rules of a file ("": the default rules alone).
func NewLimits(file string, client redis.UniversalClient, meter ratelimit.Meter, log *slog.Logger) (*Limits, error) {
	book, err := ratelimit.LoadRules(file)
	if err != nil {
		return nil, err
	}
	_, cluster := client.(*redis.ClusterClient)
	store, sync := ratelimit.NewRedis(client), ratelimit.NewSync(client, book)
	gate := ratelimit.NewGate(book, store, ratelimit.GateOptions{Nodes: sync.Nodes, Cluster: cluster, Meter: meter})
	return &Limits{Book: book, Gate: gate, Admin: ratelimit.NewAdmin(book, sync, store), sync: sync, log: log}, nil
}

// Run keeps the rules up to date until ctx ends, then waits for refunds under way.
func (l *Limits) Run(ctx context.Context) error {
	defer l.Gate.Close()
	last := time.Time{}
	err := l.sync.Run(ctx, func(err error) {
		if now := time.Now(); now.Sub(last) > time.Minute {
			last = now
			l.log.WarnContext(ctx, "limits can't be kept up to date, the last ones hold", "err", err)
		}
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
