// Command api serves the HTTP API. It keeps no state, so several instances may run.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/metrics"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/tracing"
)

func main() { app.Main(run) }

// run wires the API and serves it until ctx ends. It stops the server before the connections,
// because accepted requests still use them.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	cfg, log, err := app.Start(config.API, "api", nil, args, environ, stdout, stderr,
		connect.Check)
	if err != nil {
		return err
	}
	settings, err := app.SettingsOf(cfg)
	if err != nil {
		return err
	}
	registry := metrics.NewAPI(app.Version())
	tracer, err := tracing.Start(ctx, cfg.Trace, "seckill-api", app.Version(), log)
	if err != nil {
		return err
	}
	up, err := connect.Open(ctx, cfg, registry.Publishing.Outcome, tracer.Orders(), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Close()) }()
	up.Observers = app.Observers{Reservations: registry.Reservations, Tracer: tracer.Orders()}
	registry.Connections(up.Redis.PoolStats, up.Store.Pool(), up.Queue.DownReason)
	apiSettings := app.APISettings{
		Config: cfg, Recorder: registry.Route, CountLimit: registry.Count,
		CountFetch: registry.CountFetch,
	}
	if tracer != nil {
		apiSettings.Trace = tracer.Request
	}
	api, err := app.NewAPI(up.Parts, settings, apiSettings)
	if err != nil {
		return err
	}
	listener, err := app.Listen(ctx, "SECKILL_HTTP_ADDR", cfg.HTTP.Addr)
	if err != nil {
		return err
	}
	warnIfNotDurable(ctx, up.RedisStore, log)
	if cfg.Payment.Provider == "test" {
		log.Warn("SECKILL_PAYMENT_PROVIDER is test: a buyer who calls pay has paid, without money; " +
			"set stripe to take money")
	}
	timeout := cfg.Process.ShutdownTimeout
	serve := app.Serve(api.Server(cfg.HTTP.Addr, log), listener, timeout, log)
	serveConnected := app.WorkerFunc(func(ctx context.Context) error {
		waiting, cancel := context.WithTimeout(ctx, connectTimeout)
		_ = app.AwaitUp(waiting, up.Queue) // the API serves without RabbitMQ too
		cancel()
		return serve.Run(ctx)
	})
	log.Info("api is listening", "addr", listener.Addr().String(), "version", app.Version())
	return app.Run(ctx, timeout,
		app.OpsWorkers(ctx, cfg.Process.OpsAddr, registry.Handler(), api.Health.Ready, log),
		append(append(up.Workers(), tracer), api.Workers()...), []app.Worker{serveConnected},
		[]app.Worker{app.OnStop(api.Health.Drain)})
}

// connectTimeout bounds the wait for RabbitMQ at startup. Without the wait, only Redis would hold
// the orders of a node's first moments, as if RabbitMQ were down. Meanwhile the kernel keeps new
// connections in the listener's backlog.
const connectTimeout = 3 * time.Second

// warnIfNotDurable warns an operator whose Redis has no append-only file. The API still starts,
// because RabbitMQ keeps the orders while it is up.
func warnIfNotDurable(ctx context.Context, store *redisstore.Store, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if !store.Durable(ctx) {
		log.Warn("redis has no append-only file (set appendonly yes): " +
			"while RabbitMQ is down, a loss of Redis loses orders")
	}
}
