package tracing

import (
	"context"
	"log/slog"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/order"
)

// Of makes a program's tracing by its settings; nil where no collector is named.
func Of(ctx context.Context, cfg config.Trace, service, version string, log *slog.Logger) (*Tracing, error) {
	if cfg.Endpoint == "" {
		return nil, nil //nolint:nilnil // no tracing is what was asked for
	}
	return New(ctx, Options{Endpoint: cfg.Endpoint, Service: service, Version: version, OneIn: cfg.OneIn, Log: log})
}

// Orders is what follows orders; nil where nothing is traced.
func (t *Tracing) Orders() order.Tracer {
	if t == nil {
		return nil
	}
	return t
}

// Requests is what follows requests; nil where nothing is traced.
func (t *Tracing) Requests() httpapi.Tracer {
	if t == nil {
		return nil
	}
	return t
}
