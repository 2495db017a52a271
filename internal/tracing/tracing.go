// Package tracing follows some of the requests through the whole house by OpenTelemetry and tells a collector by OTLP over
// HTTP: from the API's answer through the trip to Redis and the message to RabbitMQ to the consumer's batch and its
// commit.
//
// Buyers travel in groups and messages are written in batches: a step that several share goes on from the first of them
// that is followed and is linked with the others. A request from outside begins a trace of its own, whatever its caller
// says, and is linked with the caller's (W3C Trace Context's "restart"): who is outside must not decide what is sampled.
// A program that is told of no collector has none of this: no Tracing is made, and nothing on a buyer's way asks for one.
//
// It and the programs' main are the only ones that know OpenTelemetry. Safe for concurrent use.
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
)

// Options say where traces go and whose they are.
type Options struct {
	Endpoint         string // http://host:port of a collector; /v1/traces is added
	Service, Version string
	OneIn            int // one of so many requests is followed; 1 if 0
	Log              *slog.Logger
}

// Tracing follows requests.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	log      *slog.Logger
}

const (
	// exportEvery is how long a span waits for company on its way to the collector.
	exportEvery = time.Second
	// exportDeadline bounds each call to the collector, and the last ones when a program ends.
	exportDeadline = 3 * time.Second
	// mostWaiting spans are kept for a collector that is away; more are dropped.
	mostWaiting = 4096
)

// New begins to follow. The collector need not be up.
func New(ctx context.Context, o Options) (*Tracing, error) {
	to, err := url.JoinPath(o.Endpoint, "v1", "traces")
	if err != nil {
		return nil, fmt.Errorf("the address of the traces' collector: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to), otlptracehttp.WithTimeout(exportDeadline))
	if err != nil {
		return nil, fmt.Errorf("make an exporter of traces: %w", err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter, sdk.WithBatchTimeout(exportEvery), sdk.WithExportTimeout(exportDeadline), sdk.WithMaxQueueSize(mostWaiting)),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(1/float64(max(1, o.OneIn))))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", o.Service), attribute.String("service.version", o.Version))),
	)
	return &Tracing{provider: provider, tracer: provider.Tracer("flashsale.dev/seckill"), log: o.Log}, nil
}

// Run waits until ctx ends, and then tells the collector what it has not been told yet. Where nothing is traced it only
// waits.
func (t *Tracing) Run(ctx context.Context) error {
	<-ctx.Done()
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportDeadline)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.WarnContext(ctx, "the last traces were not told", "err", err)
	}
	return nil
}
