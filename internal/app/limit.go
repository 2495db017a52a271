package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Limits are the rate limiter of a node: its rules, the gate that applies them and the watch over their changes.
type Limits struct {
	Book  *rules.Rulebook
	Gate  *gate.Gate
	Admin *rules.Admin
	sync  *rules.Sync
	edge  *redislimit.Publisher
	log   *slog.Logger
}

// NewLimits reads the rules of a file ("": the default rules alone).
func NewLimits(file string, client redis.UniversalClient, metrics gate.Metrics, log *slog.Logger) (*Limits, error) {
	book, err := rules.Load(file)
	if err != nil {
		return nil, err
	}
	_, cluster := client.(*redis.ClusterClient)
	store, sync := redislimit.New(client), rules.NewSync(client, book)
	g := gate.New(book, store, gate.Options{Nodes: sync.Nodes, Cluster: cluster, Metrics: metrics})
	return &Limits{
		Book: book, Gate: g, Admin: rules.NewAdmin(book, sync, store), sync: sync, edge: redislimit.NewPublisher(client), log: log,
	}, nil
}

// Run keeps the rules up to date, and an edge told of the script, until ctx ends; then it waits for refunds under way.
func (l *Limits) Run(ctx context.Context) error {
	defer l.Gate.Close()
	var g errgroup.Group
	g.Go(func() error { return l.edge.Run(ctx, l.warns(ctx, "an edge can't be told of the limiter's script")) })
	g.Go(func() error {
		return l.sync.Run(ctx, l.warns(ctx, "limits can't be kept up to date, the last ones hold"))
	})
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// warns logs a trouble once a minute.
func (l *Limits) warns(ctx context.Context, trouble string) func(error) {
	last := time.Time{}
	return func(err error) {
		if now := time.Now(); now.Sub(last) > time.Minute {
			last = now
			l.log.WarnContext(ctx, trouble, "err", err)
		}
	}
}
