package logging

import (
	"context"
	"hash/maphash"
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
		return slog.New(newHandler(slog.NewTextHandler(w, opts)))
	}
	return slog.New(newHandler(slog.NewJSONHandler(w, opts)))
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

// handler adds the ids of the request and of the trace to every record whose context has them.
//
// It writes a warning or an error once in repeatPause while it stays the same: its message and all
// its attributes. A dozen workers retry several times a second while a server is down. The next one
// that is written has the number of those that were not in not_logged.
type handler struct {
	slog.Handler
	scope   string // the attributes and groups that the logger adds
	written *written
}

func newHandler(h slog.Handler) handler {
	return handler{h, "", &written{seed: maphash.MakeSeed(), records: make(map[uint64]repeat)}}
}

// Handle writes a record, or counts it.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	if id := TraceID(ctx); id != "" {
		r.AddAttrs(slog.String("trace_id", id))
	}
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	text := h.scope + r.Level.String() + r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	dropped, ok := h.written.allow(text, r.Time)
	if !ok {
		return nil
	}
	if dropped > 0 {
		r.AddAttrs(slog.Int("not_logged", dropped))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that remembers the same records.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	scope := h.scope
	for _, a := range attrs {
		scope += a.String() + " "
	}
	return handler{h.Handler.WithAttrs(attrs), scope, h.written}
}

// WithGroup returns a handler that remembers the same records.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.scope + name + ".", h.written}
}
