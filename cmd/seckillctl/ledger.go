package main

import (
	"fmt"
	"net"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/sqlstore"
)

// redisServer holds the flags of commands that use Redis. They are those of internal/config, which
// reads them for the programs.
type redisServer struct {
	Redis  string `name:"redis-addrs" env:"SECKILL_REDIS_ADDRS" default:"127.0.0.1:6379" help:"Redis, comma list; more than one is a cluster."`
	Master string `name:"redis-sentinel-master" env:"SECKILL_REDIS_SENTINEL_MASTER" help:"Name of the master that the sentinels monitor."`

	RedisUsername    string `env:"SECKILL_REDIS_USERNAME" help:"User of Redis' ACLs; the default user if empty."`
	RedisPassword    string `env:"SECKILL_REDIS_PASSWORD" help:"Redis' password; none if empty."`
	RedisTLS         bool   `name:"redis-tls" env:"SECKILL_REDIS_TLS" help:"Use TLS to Redis."`
	SentinelPassword string `name:"redis-sentinel-password" env:"SECKILL_REDIS_SENTINEL_PASSWORD" help:"Password of the sentinels themselves; none if empty."`

	GateLifetime time.Duration `env:"SECKILL_GATE_LIFETIME" default:"5s" help:"With Sentinel or a cluster: lifetime of a gate without a renewal, the same as on every node."`
	WaitReplicas int           `name:"redis-wait-replicas" env:"SECKILL_REDIS_WAIT_REPLICAS" default:"0" help:"Replicas that must have the units of a requeued order before it is written; 0 = off; the same as on every node."`
	WaitTimeout  time.Duration `name:"redis-wait-timeout" env:"SECKILL_REDIS_WAIT_TIMEOUT" default:"500ms" help:"Longest wait for those replicas."`
}

// settings converts the flags for connect.RedisOf.
func (r redisServer) settings() config.Redis {
	return config.Redis{
		Addrs: strings.Split(r.Redis, ","), SentinelMaster: r.Master,
		SentinelSecret: config.Secret(r.SentinelPassword),
		Username:       r.RedisUsername, Password: config.Secret(r.RedisPassword), TLS: r.RedisTLS,
		GateLifetime: r.GateLifetime, WaitReplicas: r.WaitReplicas, WaitTimeout: r.WaitTimeout,
	}
}

// Validate checks the addresses. The client's error of one that is written as a URL would print its
// password. kong calls it.
func (r redisServer) Validate() error {
	for i, addr := range strings.Split(r.Redis, ",") {
		if _, port, err := net.SplitHostPort(strings.TrimSpace(addr)); err != nil || port == "" {
			return fmt.Errorf("SECKILL_REDIS_ADDRS (--redis-addrs): address %d must be host:port",
				i+1)
		}
	}
	return nil
}

// ledgerCmd prints a sale's ledger. It reads Redis and MySQL itself, because the API may be the
// part that fails.
type ledgerCmd struct {
	database
	redisServer
	GoodsID int64 `arg:"" help:"The goods id."`
}

// Run prints the ledger. A ledger that does not balance is an error with its own exit code. Scripts
// can then monitor a sale by the exit code alone.
func (c *ledgerCmd) Run(s *session) error {
	client := connect.RedisOf(c.settings())
	defer client.Close()
	return c.with(s, func(store *sqlstore.Store) error {
		sale, err := store.Sale(s.ctx, c.GoodsID)
		if err != nil {
			return err
		}
		reservations := redisstore.New(client, redisstore.Options{})
		l, err := reconcile.LedgerReader{Store: store, Redis: reservations}.Ledger(s.ctx, sale)
		if err != nil {
			return err
		}
		if err := s.print(l, "%s", ledgerText(l)); err != nil || l.Balanced {
			return err
		}
		return &exitError{
			code: codeUnbalanced,
			error: fmt.Errorf("the ledger of goods %d does not "+
				"balance: the order-consumers' logs name each difference", c.GoodsID),
		}
	})
}

// ledgerText formats a ledger. Its labels are the API's field names.
func ledgerText(l seckill.Ledger) string {
	d := l.Differences
	return fmt.Sprintf(`total      %d
available  %d
pending    %d
sold       %d
database   stock %d, active %d
epoch      %d
balanced   %t
differing  unsettled %d, unwritten %d, not released %d, totals %d`,
		l.Total, l.Available, l.Pending, l.Sold, l.Database.Stock, l.Database.Active, l.Epoch,
		l.Balanced,
		d.Unsettled, d.Unwritten, d.Unreleased, d.Totals)
}
