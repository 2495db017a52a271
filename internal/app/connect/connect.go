// Package connect connects the house to real servers: Redis (one, a Sentinel's master or a cluster), MySQL or MariaDB,
// and RabbitMQ. None of them needs to be up when a program starts: connections are made, and made again, when needed.
package connect

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/sqlstore"
)

// Servers are open connections.
type Servers struct {
	app.Parts
	publisher *rabbit.Publisher
}

// Open prepares connections; it contacts no server. messages counts messages to RabbitMQ, and
// tracer marks them; both may be nil.
func Open(ctx context.Context, cfg config.Config, messages rabbit.Metrics, tracer order.Tracer, log *slog.Logger) (*Servers, error) {
	store, err := sqlstore.Open(ctx, cfg.MySQL.DSN.Reveal(), sqlstore.Options{ReadDSN: cfg.MySQL.ReadDSN.Reveal()})
	if err != nil {
		return nil, err
	}
	fresh := make(chan int, 16*cfg.Order.Shards)
	opts := rabbit.Options{
		URLs: cfg.AMQP.Nodes(), Shards: cfg.Order.Shards, Logger: log, PublishTimeout: cfg.AMQP.PublishTimeout,
		Metrics: messages,
		OnNewQueue: func(shard int) {
			select {
			case fresh <- shard:
			default: // nobody listens, or it has been told already: every connect tells again
			}
		},
	}
	if tracer != nil {
		opts.TraceParent = tracer.Mark
	}
	publisher, err := rabbit.NewPublisher(opts)
	if err != nil {
		return nil, closing(store, err)
	}
	source, err := rabbit.NewSource(opts)
	if err != nil {
		return nil, closing(store, err)
	}
	client := RedisOf(cfg.Redis)
	shelf := redisstore.New(client, redisstore.Options{
		MaxBacklogMillis: cfg.Order.MaxBacklogAge.Milliseconds(),
		WaitReplicas:     cfg.Redis.WaitReplicas, WaitTimeout: cfg.Redis.WaitTimeout,
	})
	parts := app.Parts{Redis: client, Shelf: shelf, Store: store, Queue: publisher, Source: source, Dead: dead{source}, Fresh: fresh, Log: log}
	return &Servers{Parts: parts, publisher: publisher}, nil
}

// dead is the queue of dead letters as a source of one shard.
type dead struct{ *rabbit.Source }

// Shards is one.
func (dead) Shards() int { return 1 }

// Open opens the dead letters.
func (d dead) Open(ctx context.Context, _ int) (order.Stream, error) { return d.OpenDead(ctx) }

func closing(store *sqlstore.Store, err error) error {
	if closeErr := store.Close(); closeErr != nil {
		return fmt.Errorf("%w (and %w)", err, closeErr)
	}
	return err
}

// Redis' timeouts: a call that takes longer has an unknown outcome, and its caller is told so within a second.
const (
	redisDial  = 500 * time.Millisecond
	redisTalk  = time.Second
	redisConns = 64
)

// Redis makes a client of one server, of a cluster (several addresses) or of a Sentinel's master, without a password. It
// retries nothing by itself where something may have happened: who asks knows whether asking twice is safe. (A
// cluster's client asks again where a connection broke; everything that it is given may be.)
func Redis(addrs []string, sentinelMaster string) redis.UniversalClient {
	return RedisOf(config.Redis{Addrs: addrs, SentinelMaster: sentinelMaster})
}

// RedisOf is Redis by its settings.
func RedisOf(cfg config.Redis) redis.UniversalClient {
	opts := &redis.UniversalOptions{
		Addrs: cfg.Addrs, MasterName: cfg.SentinelMaster, Username: cfg.Username, Password: cfg.Password.Reveal(),
		SentinelPassword: cfg.SentinelSecret.Reveal(),
		DialTimeout:      redisDial, ReadTimeout: redisTalk + cfg.ReplicasWait(), WriteTimeout: redisTalk, PoolTimeout: redisTalk,
		MaxRetries: -1, DialerRetries: 1, PoolSize: redisConns, ContextTimeoutEnabled: true,
	}
	if cfg.TLS {
		opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12} // the server's name is its address' host
	}
	if len(opts.Addrs) > 1 && opts.MasterName == "" {
		return ofCluster(opts)
	}
	return redis.NewUniversalClient(opts)
}

// Workers keep the connections: they start first and end last.
func (s *Servers) Workers() []app.Worker { return []app.Worker{s.publisher} }

// Close ends what the workers do not own.
func (s *Servers) Close() error {
	redisErr := s.Redis.Close()
	if err := s.Store.Close(); err != nil {
		return err
	}
	return redisErr
}
