package logging

import (
	"context"
	"io"
	"log/slog"
)

// RequestIDKey is the key of a context's value whose log records have a request's id: a string.
type RequestIDKey struct{}

// RequestID returns the request's id of a context, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(RequestIDKey{}).(string)
	return id
}

type traceIDKey struct{}

// WithTraceID returns a context whose log records have a trace's id.
func WithTraceID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, traceIDKey{}, id)
}

// TraceID returns the trace's id of a context, or "".
func TraceID(ctx context.Context) string {
	id, _ := ctx.Value(traceIDKey{}).(string)
	return id
}

// Logger returns a logger that writes records of at least a level to w. The format "text" writes
// key=value pairs, any other JSON. Times are UTC, and durations have units. Of equal
// warnings it writes one in 10 s, with the number of those that it left out in not_logged.
func Logger(w io.Writer, level slog.Level, format string) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if format == "text" {
		return slog.New(traced{withoutRepeats(slog.NewTextHandler(w, opts))})
	}
	return slog.New(traced{withoutRepeats(slog.NewJSONHandler(w, opts))})
}

// readable converts the time of a record to UTC, so that logs of several machines sort by text. It
// converts durations to text such as 1.5s, because JSON would have nanoseconds.
func readable(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// traced adds the ids of the request and of the trace to every record whose context has them.
type traced struct{ slog.Handler }

// Handle adds the ids and passes the record on.
func (t traced) Handle(ctx context.Context, r slog.Record) error {
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	if id := TraceID(ctx); id != "" {
		r.AddAttrs(slog.String("trace_id", id))
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs keeps the ids on loggers with attributes.
func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traced{t.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the ids on loggers with a group.
func (t traced) WithGroup(name string) slog.Handler { return traced{t.Handler.WithGroup(name)} }
