// Command order-consumer writes orders; it relays the outbox, expires what is not paid, audits, and rebuilds sales in
// Redis. Many of them may run side by side.
package main

import (
	"context"
	"errors"
	"io"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/obs/prom"
	"flashsale.dev/seckill/internal/obs/trace"
	"flashsale.dev/seckill/internal/servers"
)

func main() { app.Main(run) }

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	cfg, log, err := app.Start(config.Consumer, "order-consumer", nil, args, environ, stdout, stderr)
	if err != nil {
		return err
	}
	settings, err := app.SettingsOf(cfg)
	if err != nil {
		return err
	}
	metrics := prom.NewConsumer(app.Version())
	tracing, err := trace.Of(ctx, cfg.Trace, "seckill-order-consumer", app.Version(), log)
	if err != nil {
		return err
	}
	up, err := servers.Open(ctx, cfg, log, servers.ObservedBy(metrics.Queue), servers.TracedBy(tracing.Orders()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Close()) }()
	up.Observer, up.Seen = metrics.Mender, app.Observers{Writer: metrics.Writer, Relay: metrics.Mender, Survey: metrics.Survey, Tracer: tracing.Orders()}
	metrics.Pools(up.Pools())
	health := app.NewHealth(up.Parts)
	crew := app.NewCrew(up.Parts, settings)
	log.Info("order-consumer is at work", "shards", up.Source.Shards(), "version", app.Version())
	return app.Run(ctx, cfg.Program.ShutdownTimeout,
		app.OpsWorkers(ctx, cfg.Program.OpsAddr, metrics.Handler(), health.Ready, log),
		append(up.Workers(), tracing), crew)
}
