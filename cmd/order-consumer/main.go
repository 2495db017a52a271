// Command order-consumer runs the background workers: it writes orders, relays the outbox, expires
// unpaid orders, reconciles Redis with MySQL, and rebuilds sales. Several instances may run.
package main

import (
	"context"
	"errors"
	"io"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/metrics"
	"flashsale.dev/seckill/internal/tracing"
)

func main() { app.Main(run) }

// run wires the workers and runs them until ctx ends. It stops the workers before the
// connections that they use.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	cfg, log, err := app.Start(config.Consumer, "order-consumer", nil, args, environ, stdout,
		stderr, connect.Check)
	if err != nil {
		return err
	}
	settings, err := app.SettingsOf(cfg)
	if err != nil {
		return err
	}
	registry := metrics.NewConsumer(app.Version())
	tracer, err := tracing.Start(ctx, cfg.Trace, "seckill-order-consumer", app.Version(), log)
	if err != nil {
		return err
	}
	up, err := connect.Open(ctx, cfg, registry.Publishing.Outcome, tracer.Orders(), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Close()) }()
	up.Observers = app.Observers{
		Writes: registry.Writes, Relayed: registry.Repairs.Relayed, Repairs: registry.Repairs,
		Rebuilt: registry.Repairs.Rebuilt, LineMoved: registry.Lines.Moved,
		Webhooks: registry.Webhooks,
		Tracer:   tracer.Orders(),
	}
	registry.Connections(up.Redis.PoolStats, up.Store.Pool(), up.Queue.DownReason)
	health := app.NewHealth(up.Parts)
	workers := app.NewWorkers(up.Parts, settings)
	log.Info("order-consumer is running", "shards", up.Source.Shards(), "version", app.Version())
	return app.Run(ctx, cfg.Process.ShutdownTimeout,
		app.OpsWorkers(ctx, cfg.Process.OpsAddr, registry.Handler(), health.Ready, log),
		append(up.Workers(), tracer), workers, []app.Worker{app.OnStop(health.Drain)})
}
