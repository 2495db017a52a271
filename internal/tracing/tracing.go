// Package tracing exports traces of a sample of the requests to an OpenTelemetry collector, by OTLP
// over HTTP. A trace covers the API's response, the call to Redis, the message to RabbitMQ, and the
// consumer's transaction.
//
// A batch serves several requests. Its span continues the trace of the first sampled request and
// links the traces of the others. A request from outside starts a new trace and links its caller's
// (W3C Trace Context's "restart"), because callers must not control the sampling. A program without
// a collector makes no Tracing, and its requests do no tracing work.
//
// Only this package imports OpenTelemetry. All types are safe for concurrent use.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"flashsale.dev/seckill/internal/config"
)

// Tracing makes and exports spans.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	log      *slog.Logger
}

const (
	// exportEvery is the longest time for which a span waits for its batch.
	exportEvery = time.Second
	// exportDeadline bounds each call to the collector, and the last export at shutdown.
	exportDeadline = 3 * time.Second
	// maxQueued is how many spans wait for a collector that does not answer; more are dropped.
	maxQueued = 4096
)

// Start starts a program's tracing. It returns nil if the settings name no collector. The collector
// need not be reachable. An invalid endpoint is an error that names the setting.
func Start(
	ctx context.Context, cfg config.Trace, service, version string, log *slog.Logger,
) (*Tracing, error) {
	if cfg.Endpoint == "" {
		return nil, nil // nil means that nothing is traced
	}
	to, err := url.JoinPath(cfg.Endpoint, "v1", "traces")
	if err != nil {
		return nil, fmt.Errorf("SECKILL_OTLP_ENDPOINT %q must be http://host:port: %w",
			cfg.Endpoint, err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to),
		otlptracehttp.WithTimeout(exportDeadline))
	if err != nil {
		return nil, fmt.Errorf("make an exporter of traces to %s: %w", cfg.Endpoint, err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(loggingExporter{exporter, log}, sdk.WithBatchTimeout(exportEvery),
			sdk.WithExportTimeout(exportDeadline), sdk.WithMaxQueueSize(maxQueued)),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(1/float64(max(1, cfg.OneIn))))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", service),
			attribute.String("service.version", version))),
	)
	return &Tracing{
		provider: provider, tracer: provider.Tracer("flashsale.dev/seckill"), log: log,
	}, nil
}

// loggingExporter logs failed exports. OpenTelemetry would print them on stderr, between the lines
// of the log.
type loggingExporter struct {
	sdk.SpanExporter
	log *slog.Logger
}

// ExportSpans exports spans. It returns nil after a failure too, which loses the spans.
func (l loggingExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := l.SpanExporter.ExportSpans(ctx, spans); err != nil {
		l.log.WarnContext(ctx, "the collector takes no traces: start it, or correct the setting",
			"setting", "SECKILL_OTLP_ENDPOINT", "err", err)
	}
	return nil
}

// Run waits until ctx ends, then exports the remaining spans. A nil Tracing only waits, so that
// programs run it without a check.
func (t *Tracing) Run(ctx context.Context) error {
	<-ctx.Done()
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportDeadline)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.WarnContext(ctx, "last traces not exported", "err", err)
	}
	return nil
}
