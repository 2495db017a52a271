// Package embedded runs the servers in the process: miniredis for Redis, SQLite for MySQL and an
// in-memory queue for RabbitMQ. The user installs no server. Scripts, services and workers are the
// same as with real servers.
//
// Only SQLite is durable. The queue confirms a message after the consumer has written it, so a 202
// means an order in SQLite. Redis is rebuilt from SQLite at every start, as after the loss of a
// real Redis.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/memqueue"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/sqlstore"
)

// Servers holds the embedded servers. Close closes them.
type Servers struct {
	app.Parts
	mini *miniredis.Miniredis
}

// maxRebuilds limits the rebuilds under way, of which each renews its lock twice a second. The
// embedded Redis runs some 2,000 scripts a second: with 1,000 rebuilds it would do little but renew
// locks, and after a restart with thousands of sales no rebuild would end.
const maxRebuilds = 50

// queue is a memqueue that is always up.
type queue struct{ *memqueue.Queue }

// DownReason returns nil: the queue is in this process.
func (queue) DownReason() error { return nil }

// Start opens the database file below dir, migrates it and starts the servers. The gate refuses
// purchases while the oldest pending reservation is older than maxBacklog; 0 is no limit.
func Start(
	ctx context.Context, dir string, maxBacklog time.Duration, log *slog.Logger,
) (*Servers, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory %s (-data): %w", dir, err)
	}
	mini, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start the embedded redis: %w", err)
	}
	store, err := openStore(ctx, filepath.Join(dir, "seckill.db"))
	if err != nil {
		mini.Close()
		return nil, err
	}
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: []string{mini.Addr()}, MaxRetries: -1, ContextTimeoutEnabled: true,
	})
	orders := memqueue.New(1)
	return &Servers{mini: mini, Parts: app.Parts{
		Redis: client, Store: store, Queue: queue{orders}, Source: orders, Log: log,
		Provider: paymentprovider.Test{}, MaxRebuilds: maxRebuilds,
		RedisStore: redisstore.New(client, redisstore.Options{
			Lease: uuid.NewString(), MaxBacklogMillis: maxBacklog.Milliseconds(),
		}),
	}}, nil
}

// openStore opens and migrates the database file.
func openStore(ctx context.Context, file string) (*sqlstore.Store, error) {
	store, err := sqlstore.Open(ctx, "sqlite:"+file, "")
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		err = errors.Join(fmt.Errorf("migrate the database: %w", err), store.Close())
		return nil, sqlstore.WithRemedy(err, file)
	}
	return store, nil
}

// Close closes the database and stops Redis.
func (s *Servers) Close() error {
	defer s.mini.Close()
	return errors.Join(s.Redis.Close(), s.Store.Close())
}
