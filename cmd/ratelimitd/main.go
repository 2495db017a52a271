// Command ratelimitd is the rate limiter as a service: Envoy's rate limit service v3 over gRPC, and
// JSON over HTTP. It has the API's rules file, live changes and metrics. Several instances may run.
package main

import (
	"context"
	"errors"
	"io"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/limitservice"
	"flashsale.dev/seckill/internal/metrics"
)

func main() { app.Main(run) }

// run wires the service and serves it until ctx ends. It stops the servers before the connection
// to Redis, because accepted requests still use it.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	cfg, log, err := app.Start(config.RateLimit, "ratelimitd", nil, args, environ, stdout, stderr)
	if err != nil {
		return err
	}
	registry, client := metrics.NewLimitService(app.Version()), connect.RedisOf(cfg.Redis)
	defer func() { err = errors.Join(err, client.Close()) }()
	registry.RedisPool(client.PoolStats)
	limits, err := app.NewLimits(cfg.Limiter.File, cfg.Limiter.Timeout, client, registry.Count, log)
	if err != nil {
		return err
	}
	httpListener, err := app.Listen(ctx, "SECKILL_HTTP_ADDR", cfg.HTTP.Addr)
	if err != nil {
		return err
	}
	grpcListener, err := app.Listen(ctx, "SECKILL_GRPC_ADDR", cfg.Limiter.GRPCAddr)
	if err != nil {
		return err
	}
	timeout, health := cfg.Process.ShutdownTimeout, limitservice.NewHealth(client)
	web := httpapi.Server(limitservice.NewHTTP(limits.Book, limits.Gate, limits.Admin(nil, nil),
		httpapi.Probes(health.Ready, log), log), cfg.HTTP.Addr, log)
	web.RegisterOnShutdown(limits.Gate.Drain)
	rpc := limitservice.NewGRPC(limitservice.NewEnvoy(limits.Book, limits.Gate), grpcListener,
		timeout)
	drain := app.OnStop(func() {
		health.Drain()
		rpc.Drain()
	})
	log.Info("ratelimitd is listening", "http", httpListener.Addr().String(),
		"grpc", grpcListener.Addr().String(), "version", app.Version())
	return app.Run(ctx, timeout,
		app.OpsWorkers(ctx, cfg.Process.OpsAddr, registry.Handler(), health.Ready, log),
		[]app.Worker{connect.ProbeRedis(cfg.Redis, client, log), limits},
		[]app.Worker{app.Serve(web, httpListener, timeout, log), rpc},
		[]app.Worker{drain})
}
