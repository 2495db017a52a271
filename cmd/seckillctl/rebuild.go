package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
)

// rebuildCmd rebuilds a sale in Redis, in a new epoch. The consumers rebuild by themselves after
// Redis lost a sale. This command is for a sale whose ledger does not balance.
type rebuildCmd struct {
	database
	redisServer
	confirmation
	AMQP           config.Secret `name:"amqp-url" env:"SECKILL_AMQP_URL" default:"amqp://guest:guest@127.0.0.1:5672/" help:"RabbitMQ's nodes, comma list of amqp:// URLs."`
	Shards         int           `name:"order-shards" env:"SECKILL_ORDER_SHARDS" default:"4" help:"Order queues, the same as on every node."`
	PublishTimeout time.Duration `name:"publish-timeout" env:"SECKILL_PUBLISH_TIMEOUT" default:"1s" help:"Longest wait of any node for a confirm; the gate stays shut for at least that time."`
	PaymentTimeout time.Duration `name:"payment-timeout" env:"SECKILL_PAYMENT_TIMEOUT" default:"15m" help:"How long an order may stay unpaid, the same as on every node; for orders that the rebuild writes itself."`
	Wait           time.Duration `default:"1m" help:"How long to wait for RabbitMQ and for the order-consumers, one of which must run."`
	GoodsID        int64         `arg:"" help:"The goods id."`
}

// rebuilt is the printed result.
type rebuilt struct {
	rebuild.Result
	ShutSeconds float64 `json:"shutSeconds"`
}

// Run rebuilds the sale after a confirmation and prints the result. It first refuses a draft,
// because Redis holds no drafts.
func (c *rebuildCmd) Run(s *session) error {
	up, err := connect.Open(s.ctx, c.config(), nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return usage(err) // no server is contacted yet: a setting is malformed
	}
	defer up.Close()
	sale, err := up.Store.Sale(s.ctx, c.GoodsID)
	if err != nil {
		return err
	}
	if sale.Status == seckill.Draft {
		return apierror.New(apierror.Conflict,
			"the sale is a draft: there is nothing to rebuild")
	}
	if err := c.confirmed(s, fmt.Sprintf("Shut the gate of %q (goods %d) for a second or more",
		sale.Title, c.GoodsID)); err != nil {
		return err
	}
	done, err := c.whileConnected(s.ctx, up)
	if err != nil {
		return err
	}
	return s.print(rebuilt{done, done.Shut.Seconds()},
		"goods %d: epoch %d -> %d, gate shut for %s\n"+
			"%d units available; %d reservations in flight written, %d lost (dead letters)",
		done.GoodsID, done.Was, done.Epoch, done.Shut.Round(time.Millisecond), done.Available,
		done.Found, done.Lost)
}

// config returns the settings of a rebuild; unused ones stay at their zero values.
func (c *rebuildCmd) config() config.Config {
	return config.Config{
		Redis: c.settings(), MySQL: config.MySQL{DSN: config.Secret(c.DSN)},
		AMQP:  config.AMQP{URLs: c.AMQP, PublishTimeout: c.PublishTimeout},
		Order: config.Order{Shards: c.Shards},
	}
}

// whileConnected connects to RabbitMQ, rebuilds the sale and disconnects. The rebuild begins only
// when RabbitMQ accepts messages: otherwise it would shut the gate, and then wait to publish the
// reservations in flight. A signal ends the rebuild before it ends the connection.
func (c *rebuildCmd) whileConnected(
	ctx context.Context, up *connect.Servers,
) (rebuild.Result, error) {
	connected, disconnect := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = app.Run(connected, time.Second, up.Workers()) // the rebuild's error matters more
	}()
	defer func() { disconnect(); <-ended }()
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	if err := app.AwaitUp(ctx, up.Queue); err != nil {
		return rebuild.Result{}, err
	}
	return c.rebuild(ctx, up)
}

// rebuild rebuilds the sale. If it fails halfway, the gate stays shut until an order consumer has
// finished the rebuild.
func (c *rebuildCmd) rebuild(ctx context.Context, up *connect.Servers) (rebuild.Result, error) {
	done, err := c.rebuilder(up).Rebuild(ctx, c.GoodsID, "by hand")
	if err != nil {
		return done, fmt.Errorf("rebuild goods %d, which the order consumers will finish: %w",
			c.GoodsID, err)
	}
	return done, nil
}

// rebuilder returns a rebuilder as the order consumers have it.
func (c *rebuildCmd) rebuilder(up *connect.Servers) *rebuild.Rebuilder {
	return up.Rebuilder(app.Settings{
		PublishTimeout: c.PublishTimeout, ReplicaTimeout: c.settings().ReplicaTimeout(),
		PaymentTimeout: c.PaymentTimeout,
	})
}
