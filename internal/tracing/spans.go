package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"flashsale.dev/seckill/internal/logging"
	"flashsale.dev/seckill/internal/order"
)

var _ order.Tracer = (*Tracing)(nil)

// Request starts the trace of an HTTP request if it is sampled. The caller serves the request with
// the returned context, and then calls end with the response's status and reason.
func (t *Tracing) Request(
	ctx context.Context, r *http.Request, route string,
) (traced context.Context, end func(status int, reason string)) {
	opts := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer)}
	if caller := extract(propagation.HeaderCarrier(r.Header)); caller.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: caller}))
	}
	method, name := r.Method, r.Method+" "+route
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions:
	default: // a caller has invented it, and must not name spans: OpenTelemetry's conventions
		method, name = "_OTHER", "HTTP "+route
	}
	ctx, span := t.tracer.Start(ctx, name, opts...)
	if !span.IsRecording() {
		return ctx, func(int, string) {}
	}
	span.SetAttributes(
		attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.String("seckill.request_id", logging.RequestID(ctx)))
	ctx = logging.WithTraceID(ctx, span.SpanContext().TraceID().String())
	return ctx, func(status int, reason string) {
		span.SetAttributes(attribute.Int("http.response.status_code", status),
			attribute.String("seckill.reason", reason))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, reason)
		}
		span.End()
	}
}

// traceParent is the name of the W3C header.
const traceParent = "traceparent"

// Mark implements order.Tracer. It returns a W3C traceparent, or "" if ctx is not sampled.
func (t *Tracing) Mark(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceParent]
}

// Begin implements order.Tracer.
func (t *Tracing) Begin(
	ctx context.Context, step string, marks ...string,
) (context.Context, func(err error)) {
	var opts []trace.SpanStartOption
	if len(marks) > 0 {
		var others []trace.Link
		ctx, others = resume(ctx, marks)
		opts = append(opts, trace.WithLinks(others...))
	}
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, step, opts...)
	return logging.WithTraceID(ctx, span.SpanContext().TraceID().String()), func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// resume returns a context that continues the trace of the first valid mark, and links to the
// others. The trace of ctx itself ends here, because a batch belongs to the requests in it.
func resume(ctx context.Context, marks []string) (context.Context, []trace.Link) {
	ctx = logging.WithTraceID(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), "")
	var links []trace.Link
	for _, mark := range marks {
		if mark == "" {
			continue
		}
		at := extract(propagation.MapCarrier{traceParent: mark})
		switch {
		case !at.IsSampled():
		case !trace.SpanContextFromContext(ctx).IsValid():
			ctx = trace.ContextWithRemoteSpanContext(ctx, at)
		default:
			links = append(links, trace.Link{SpanContext: at})
		}
	}
	return ctx, links
}

// extract reads the span context that a carrier's traceparent names.
func extract(from propagation.TextMapCarrier) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), from)
	return trace.SpanContextFromContext(ctx)
}

// Orders returns the tracer of orders; nil if nothing is traced.
func (t *Tracing) Orders() order.Tracer {
	if t == nil {
		return nil
	}
	return t
}
