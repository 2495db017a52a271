// Package embedded brings the house's servers along in the process: miniredis for Redis, SQLite for MySQL and a queue
// in memory for RabbitMQ. Nothing needs to be installed, and the scripts, the services and the crew are the same.
//
// SQLite is the durable one. The queue confirms a message when the consumer has written it, so a 202 is an order in
// SQLite; what is in Redis is built again from there at every start, as after the loss of a real one.
package embedded

import (
	"context"
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
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/sqlstore"
)

// Servers are the embedded parts, running.
type Servers struct {
	app.Parts
	mini *miniredis.Miniredis
}

// queue is a memqueue that is always up.
type queue struct{ *memqueue.Queue }

func (queue) Up() bool        { return true }
func (queue) DownReason() string { return "" }

// Start opens the database file below dir, brings it up to date and starts the rest.
//
// maxBacklog is how old the oldest reservation that is not written may be before no more are taken; 0 is no limit.
func Start(ctx context.Context, dir string, maxBacklog time.Duration, log *slog.Logger) (*Servers, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	store, err := sqlstore.Open(ctx, "sqlite:"+filepath.Join(dir, "seckill.db"), sqlstore.Options{})
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, fmt.Errorf("bring %s up to date: %w", dir, err)
	}
	mini, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start the embedded redis: %w", err)
	}
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: []string{mini.Addr()}, MaxRetries: -1, ContextTimeoutEnabled: true,
	})
	orders := memqueue.New(memqueue.Options{})
	return &Servers{mini: mini, Parts: app.Parts{
		Redis: client, Store: store, Queue: queue{orders}, Source: orders, Log: log,
		Shelf: redisstore.New(client, redisstore.Options{Lease: uuid.NewString(), MaxBacklogMillis: maxBacklog.Milliseconds()}),
	}}, nil
}

// Close stops everything.
func (s *Servers) Close() error {
	err := s.Redis.Close()
	s.mini.Close()
	if closeErr := s.Store.Close(); closeErr != nil {
		return closeErr
	}
	return err
}
