// Package connect connects the programs to real servers: Redis (one server, a Sentinel's master or
// a cluster), MySQL or MariaDB, and RabbitMQ. No server needs to be up when a program starts.
// Connections are opened when they are needed, and again when they break.
package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/rawconn"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/workers"
)

// Servers holds the connections of a program.
type Servers struct {
	app.Parts
	publisher *rabbit.Publisher
	redis     *server
}

// Check returns the problems of the servers' addresses, to report them with those of all settings.
func Check(cfg config.Config) error {
	withSetting := func(setting string, err error) error {
		if err != nil {
			err = fmt.Errorf("%s: %w", setting, err)
		}
		return err
	}
	_, amqp := rabbit.NewPublisher(rabbit.Options{URLs: cfg.AMQP.Nodes()})
	return errors.Join(
		withSetting("SECKILL_MYSQL_DSN", sqlstore.CheckDSN(cfg.MySQL.DSN.Reveal())),
		withSetting("SECKILL_MYSQL_READ_DSN", sqlstore.CheckDSN(cfg.MySQL.ReadDSN.Reveal())),
		withSetting("SECKILL_AMQP_URL", amqp),
	)
}

// Open prepares connections; it contacts no server. Its error has the problems of Check. outcome
// counts messages to RabbitMQ, and tracer adds trace ids to them; both may be nil.
func Open(
	ctx context.Context, cfg config.Config, outcome rabbit.Outcome, tracer order.Tracer,
	log *slog.Logger,
) (*Servers, error) {
	if err := Check(cfg); err != nil {
		return nil, err
	}
	provider, err := app.NewProvider(cfg)
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(ctx, cfg.MySQL.DSN.Reveal(), cfg.MySQL.ReadDSN.Reveal())
	if err != nil {
		return nil, err
	}
	newQueues := make(chan int, 16*cfg.Order.Shards)
	opts := rabbit.Options{
		URLs: cfg.AMQP.Nodes(), Shards: cfg.Order.Shards, Logger: log,
		PublishTimeout: cfg.AMQP.PublishTimeout,
		OnOutcome:      outcome,
		OnNewQueue: func(shard int) {
			select {
			case newQueues <- shard:
			default: // the channel is full; the next connect reports the queue again
			}
		},
	}
	if tracer != nil {
		opts.TraceParent = tracer.Mark
	}
	publisher, err := rabbit.NewPublisher(opts)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	source, err := rabbit.NewSource(opts)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	client := RedisOf(cfg.Redis)
	reservations := redisstore.New(client, redisstore.Options{
		MaxBacklogMillis: cfg.Order.MaxBacklogAge.Milliseconds(),
		WaitReplicas:     cfg.Redis.WaitReplicas, WaitTimeout: cfg.Redis.WaitTimeout,
		FailsOver: cfg.Redis.EffectiveGateLifetime() > 0,
	})
	return &Servers{publisher: publisher, redis: redisServer(cfg.Redis, client), Parts: app.Parts{
		Redis: client, RedisStore: reservations, Store: store, Queue: publisher, Source: source,
		DeadLetters: deadLetterSource{source}, NewQueues: newQueues, Provider: provider,
		GateLifetime: cfg.Redis.EffectiveGateLifetime(), Log: log,
	}}, nil
}

// deadLetterSource reads the broker's queue of dead letters as a source of one shard.
type deadLetterSource struct{ *rabbit.Source }

// Shards returns 1: there is one queue of dead letters.
func (deadLetterSource) Shards() int { return 1 }

// Open opens a stream of dead letters.
func (d deadLetterSource) Open(ctx context.Context, _ int) (order.Stream, error) {
	return d.OpenDead(ctx)
}

// The outcome of a call to Redis that exceeds redisReply is unknown; its caller gets a timeout.
const (
	redisDial  = 500 * time.Millisecond // longest time of a new connection
	redisReply = time.Second            // longest wait for a reply, without that for replicas
	redisConns = 64                     // most connections to one server
)

// RedisOf makes a client of one server, of a cluster (several addresses) or of a Sentinel's master.
// The client retries no command that Redis may have executed, because only the caller can decide
// whether a retry is safe. A cluster's client does retry on broken connections; all commands of
// this program allow that.
func RedisOf(cfg config.Redis) redis.UniversalClient {
	addrs := slices.Clone(cfg.Addrs)
	for i := range addrs { // a list may have spaces after its commas
		addrs[i] = strings.TrimSpace(addrs[i])
	}
	opts := &redis.UniversalOptions{
		Addrs: addrs, MasterName: cfg.SentinelMaster, Username: cfg.Username,
		Password: cfg.Password.Reveal(), SentinelPassword: cfg.SentinelSecret.Reveal(),
		DialTimeout: redisDial, ReadTimeout: redisReply + cfg.ReplicaTimeout(),
		WriteTimeout: redisReply, PoolTimeout: redisReply, MaxRetries: -1, DialerRetries: 1,
		PoolSize: redisConns, ContextTimeoutEnabled: true,
	}
	if cfg.TLS {
		// crypto/tls verifies the certificate for the host that is dialled.
		opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	opts.Dialer = rawconn.With(redis.NewDialer(&redis.Options{
		DialTimeout: redisDial, TLSConfig: opts.TLSConfig,
	}))
	if len(opts.Addrs) > 1 && opts.MasterName == "" {
		return newCluster(opts)
	}
	client := redis.NewUniversalClient(opts)
	name := strings.Join(opts.Addrs, ",")
	if opts.MasterName != "" {
		name = opts.MasterName + " of " + name
	}
	client.AddHook(addressHook(name))
	return client
}

// Workers returns the workers that keep the connection to RabbitMQ and probe the servers. They
// start first and stop last.
func (s *Servers) Workers() []app.Worker {
	return []app.Worker{s.publisher, app.WorkerFunc(s.probe)}
}

const (
	// probeTimeout is how long a server may take to answer. RabbitMQ takes longer than rabbit's
	// dial timeout, 2 s, to refuse a password.
	probeTimeout = 3 * time.Second
	probeEvery   = time.Second
)

// server is one server that a program uses, and its last known state. Log records name it by its
// settings and its host.
type server struct {
	setting     string // names the settings that have the address
	credentials string // names the settings that have the user and the password
	host        string // one or more host:port
	ask         func(context.Context) error

	outage string    // the cause of the present outage, as logged; "" while the server is usable
	since  time.Time // the start of the present or last outage
}

// redisServer describes Redis.
func redisServer(cfg config.Redis, client redis.UniversalClient) *server {
	// Without TLS a Redis that requires it ends the connection, and the reverse is silence.
	setting := "SECKILL_REDIS_ADDRS, SECKILL_REDIS_TLS"
	credentials := "SECKILL_REDIS_USERNAME, SECKILL_REDIS_PASSWORD"
	if cfg.SentinelMaster != "" { // sentinels answer nil for a name that they do not know
		setting += ", SECKILL_REDIS_SENTINEL_MASTER"
		credentials += ", SECKILL_REDIS_SENTINEL_PASSWORD"
	}
	return &server{
		setting: setting, credentials: credentials, host: strings.Join(cfg.Addrs, ","),
		ask: func(ctx context.Context) error { return redisstore.CheckServer(ctx, client) },
	}
}

// mysqlServer describes MySQL.
func (s *Servers) mysqlServer() *server {
	return &server{
		setting: "SECKILL_MYSQL_DSN", credentials: "SECKILL_MYSQL_DSN", host: s.Store.Addr(),
		ask: s.Store.CheckReadiness,
	}
}

// replicaServer describes MySQL's replica. Without one CheckReplica returns no error.
func (s *Servers) replicaServer() *server {
	return &server{
		setting: "SECKILL_MYSQL_READ_DSN", credentials: "SECKILL_MYSQL_READ_DSN",
		host: s.Store.ReplicaAddr(), ask: s.Store.CheckReplica,
	}
}

// rabbitServer describes RabbitMQ.
func (s *Servers) rabbitServer() *server {
	return &server{
		setting: "SECKILL_AMQP_URL", credentials: "SECKILL_AMQP_URL", host: s.publisher.Hosts(),
		ask: func(ctx context.Context) error { return app.AwaitUp(ctx, s.Queue) },
	}
}

// probe asks RabbitMQ once, because the publisher logs its later outages, and the others until ctx
// ends.
func (s *Servers) probe(ctx context.Context) error {
	var asking sync.WaitGroup
	asking.Go(func() { s.rabbitServer().probe(ctx, s.Log) })
	asking.Go(func() { s.mysqlServer().run(ctx, s.Log) })
	asking.Go(func() { s.replicaServer().run(ctx, s.Log) })
	s.redis.run(ctx, s.Log)
	asking.Wait()
	return nil
}

// ProbeRedis returns a worker that asks Redis, as the workers of Servers do.
func ProbeRedis(cfg config.Redis, client redis.UniversalClient, log *slog.Logger) app.Worker {
	return app.WorkerFunc(func(ctx context.Context) error {
		redisServer(cfg, client).run(ctx, log)
		return nil
	})
}

// run probes the server until ctx ends.
func (s *server) run(ctx context.Context, log *slog.Logger) {
	_ = workers.Every(ctx, probeEvery, func(ctx context.Context) { s.probe(ctx, log) })
}

// probe asks the server once, and logs the beginning of an outage, each new cause and the end. Its
// records name the setting: other errors have the address alone, and an operator sets variables.
func (s *server) probe(ctx context.Context, log *slog.Logger) {
	asking, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := s.ask(asking)
	now, why := time.Now(), cause.Of(err)
	outage := why
	if outage == cause.Silent { // during one outage a server may be silent and unreachable in turn
		outage = cause.Unreachable
	}
	if ctx.Err() != nil || outage == s.outage {
		return
	}
	if s.outage == "" {
		s.since = now
	}
	s.outage = outage
	if err == nil {
		log.Info("the server is usable again", "setting", s.setting, "host", s.host,
			"after", now.Sub(s.since).Round(time.Second))
		return
	}
	problem, setting := s.problem(err)
	log.Warn(problem, "setting", setting, "host", s.host, "cause", why, "err", err)
}

// problem returns a message with the remedy for a server's error, and the setting to correct.
func (s *server) problem(err error) (problem, setting string) {
	switch cause.Of(err) {
	case cause.NotMigrated:
		return "the database is not migrated", s.setting
	case cause.Refused:
		return "the server refuses the user or the password: correct the setting", s.credentials
	case cause.Denied:
		return "the server denies the user a permission: grant it", s.credentials
	case cause.Untrusted:
		return "the server's certificate is not valid: renew it, name the host that it is for, or " +
			"trust its authority (SSL_CERT_FILE)", s.setting
	case cause.NoTLS, cause.NeedsTLS:
		return "the server and the setting differ in TLS: correct the setting", s.setting
	case cause.Loading:
		return "a server has not loaded its data yet: wait", s.setting
	case cause.Unreachable, cause.Silent:
		return "a server does not answer: start it, or correct its setting", s.setting
	}
	return "a server is not usable: correct it, or its setting", s.setting
}

// Close closes the connections that no worker owns.
func (s *Servers) Close() error { return errors.Join(s.Redis.Close(), s.Store.Close()) }
