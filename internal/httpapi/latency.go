package httpapi

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	latencySeconds = 10         // seconds in the window, one histogram each
	maxLatency     = 60_000_000 // longest recorded duration, in microseconds
)

// latencyWindow holds the durations of the last ten seconds, with an error of 1 %. The console
// shows its p99. A total since the start would average a rush with hours of low load. It is safe
// for concurrent use.
type latencyWindow struct {
	mu     sync.Mutex
	window *hdrhistogram.WindowedHistogram
	second int64 // Unix second of the current histogram
}

func newLatencyWindow() *latencyWindow {
	return &latencyWindow{window: hdrhistogram.NewWindowed(latencySeconds, 1, maxLatency, 2)}
}

func (l *latencyWindow) record(now time.Time, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotate(now)
	_ = l.window.Current.RecordValue(min(took.Microseconds(), maxLatency)) // always in range
}

// p99 returns the 99th percentile of the window; 0 where nothing was recorded.
func (l *latencyWindow) p99(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotate(now)
	return time.Duration(l.window.Merge().ValueAtQuantile(99)) * time.Microsecond
}

// rotate drops the histograms of seconds that have left the window. After a pause of any length
// that is at most the whole window. So it is after the clock was set back: otherwise the window
// would grow until the clock reaches the last second again.
func (l *latencyWindow) rotate(now time.Time) {
	passed := now.Unix() - l.second
	if passed < 0 && passed > -latencySeconds {
		return // a caller that read the clock before another one
	}
	for range min(max(passed, -passed), latencySeconds) {
		l.window.Rotate()
	}
	l.second = now.Unix()
}
