package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Limits are the rate limiter of a node: its rules, the gate that applies them, and two workers.
// One reads what operators change; the other publishes the script for nginx.
type Limits struct {
	Book      *rules.Rulebook
	Gate      *gate.Gate
	store     *redislimit.Store
	sync      *rules.Sync
	publisher *redislimit.Publisher
	log       *slog.Logger
}

// LimitCounter counts an event of a rate limit rule.
type LimitCounter = func(rule string, event gate.Event)

// NewLimits reads the rules of a file; "" selects the default rules. timeout bounds the wait for
// Redis' decision; 0 selects the gate's default. count may be nil.
func NewLimits(
	file string, timeout time.Duration, client redis.UniversalClient, count LimitCounter,
	log *slog.Logger,
) (*Limits, error) {
	book, err := loadRules(file)
	if err != nil {
		return nil, err
	}
	_, cluster := client.(*redis.ClusterClient)
	store, sync := redislimit.New(client, nil), rules.NewSync(client, book)
	g := gate.New(book, store, gate.Options{
		Deadline: timeout, Nodes: sync.Nodes, Cluster: cluster, Count: count,
	})
	return &Limits{
		Book: book, Gate: g, store: store, sync: sync, publisher: redislimit.NewPublisher(client),
		log: log,
	}, nil
}

// loadRules reads a file of rules; "" selects the default rules. Its error names the setting.
func loadRules(file string) (*rules.Rulebook, error) {
	book, err := rules.Load(file)
	if err != nil {
		return nil, fmt.Errorf("SECKILL_RATELIMIT_FILE (%s): %w", file, err)
	}
	return book, nil
}

// Admin reads and changes limits. own returns the limit that belongs to a key itself, such as a
// sale's rate; nil means that no key has one. audit records changes; nil records none.
func (l *Limits) Admin(own rules.OwnLimit, audit rules.Audit) *rules.Admin {
	return rules.NewAdmin(l.Book, l.sync, l.store, own, audit)
}

// Run runs both workers until ctx ends, and then waits for the refunds in flight.
func (l *Limits) Run(ctx context.Context) error {
	defer l.Gate.Close()
	var g errgroup.Group
	g.Go(func() error {
		return l.publisher.Run(ctx, l.warn(ctx, "cannot publish the limiter's script for nginx"))
	})
	g.Go(func() error {
		return l.sync.Run(ctx, l.warn(ctx, "cannot read changed limits, the last known ones hold"))
	})
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// warn returns a function that logs an error with a fixed message.
func (l *Limits) warn(ctx context.Context, message string) func(error) {
	return func(err error) { l.log.WarnContext(ctx, message, "err", err) }
}
