package logging

import (
	"context"
	"hash/maphash"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

const (
	// repeatPause is the shortest time between two equal warnings.
	repeatPause = 10 * time.Second
	// maxRepeats bounds the warnings that are remembered. Others are written each time.
	maxRepeats = 1000
)

// passing matches what differs between equal errors: the time in that of an expired certificate, and
// the port of a connection's own end.
var passing = regexp.MustCompile(`current time \S+|:\d+->`)

// repeats writes a warning or an error once in repeatPause while it stays the same: its message and
// all its attributes. A dozen workers retry several times a second while a server is down. The next
// one that is written has the number of those that were not in not_logged.
type repeats struct {
	slog.Handler
	scope   string // the attributes and groups that the logger adds
	written *written
}

// written is the warnings that were written of late, by their hash. It is safe for concurrent use.
type written struct {
	seed    maphash.Seed
	mu      sync.Mutex
	records map[uint64]repeat // guarded by mu
}

type repeat struct {
	at      time.Time // of the last one that was written
	dropped int       // since then
}

func withoutRepeats(h slog.Handler) repeats {
	return repeats{h, "", &written{seed: maphash.MakeSeed(), records: make(map[uint64]repeat)}}
}

// Handle writes a record, or counts it.
func (h repeats) Handle(ctx context.Context, r slog.Record) error {
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
func (h repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	scope := h.scope
	for _, a := range attrs {
		scope += a.String() + " "
	}
	return repeats{h.Handler.WithAttrs(attrs), scope, h.written}
}

// WithGroup returns a handler that remembers the same records.
func (h repeats) WithGroup(name string) slog.Handler {
	return repeats{h.Handler.WithGroup(name), h.scope + name + ".", h.written}
}

// allow reports whether a record of a moment is to be written, and how many equal ones were not.
func (w *written) allow(text string, now time.Time) (dropped int, ok bool) {
	key := maphash.String(w.seed, passing.ReplaceAllLiteralString(text, ""))
	w.mu.Lock()
	defer w.mu.Unlock()
	last, known := w.records[key]
	if known && now.Sub(last.at).Abs() < repeatPause { // the clock may be set back
		last.dropped++
		w.records[key] = last
		return 0, false
	}
	if !known && len(w.records) >= maxRepeats {
		w.forget(now)
	}
	if known || len(w.records) < maxRepeats {
		w.records[key] = repeat{at: now}
	}
	return last.dropped, true
}

// forget deletes what was written too long ago to matter. The caller holds mu.
func (w *written) forget(now time.Time) {
	for key, last := range w.records {
		if now.Sub(last.at).Abs() >= repeatPause {
			delete(w.records, key)
		}
	}
}
