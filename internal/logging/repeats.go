package logging

import (
	"hash/maphash"
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

// passing matches what differs between equal errors: the time in that of an expired certificate,
// and the port of a connection's own end.
var passing = regexp.MustCompile(`current time \S+|:\d+->`)

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
