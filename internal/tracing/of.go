package tracing

import (
	"context"
	"log/slog"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
)

// Of makes a program's tracing from its settings; nil if they name no collector. Its error names
// the setting.
func Of(
	ctx context.Context, cfg config.Trace, service, version string, log *slog.Logger,
) (*Tracing, error) {
	if cfg.Endpoint == "" {
		return nil, nil // nil means that nothing is traced
	}
	return New(ctx, Options{
		Endpoint: cfg.Endpoint, Service: service, Version: version, OneIn: cfg.OneIn, Log: log,
	})
}

// Orders returns the tracer of orders; nil if nothing is traced.
func (t *Tracing) Orders() order.Tracer {
	if t == nil {
		return nil
	}
	return t
}
