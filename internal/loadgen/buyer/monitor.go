package buyer

import (
	"context"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/waitingroom"
)

// watchPause is the time between two readings of a status, which may be a second old.
const watchPause = 200 * time.Millisecond

// Watch reads the public status of a waiting room for all buyers of a run. Each buyer computes its
// position from it, as the documentation of the draw describes.
type Watch struct {
	mu      sync.Mutex
	line    Line
	draw    *waitingroom.Draw
	first   string        // commitment before the draw
	changed chan struct{} // closed at the next change
}

// NewWatch returns a watch that has read nothing.
func NewWatch() *Watch { return &Watch{changed: make(chan struct{})} }

// Run reads the status until ctx ends. A reading that fails is repeated.
func (w *Watch) Run(ctx context.Context, c apiclient.Client, goodsID string) {
	for apiclient.Sleep(ctx, watchPause) == nil {
		if line, err := ReadLine(ctx, c, goodsID); err == nil {
			w.set(line)
		}
	}
}

func (w *Watch) set(line Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == "" {
		w.first = line.Commitment
	}
	if w.draw == nil && line.Seed != "" {
		w.draw, _ = line.Draw() // the verdict reads it again, and reports an error
	}
	if line.Admitted != w.line.Admitted || line.Phase != w.line.Phase {
		close(w.changed)
		w.changed = make(chan struct{})
	}
	w.line = line
}

// Commitment returns the first commitment to a seed that the watch saw.
func (w *Watch) Commitment() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// await waits until the turn of a number seems to have come, or for a pause. over reports that the
// room is over.
func (w *Watch) await(ctx context.Context, number int64, pause time.Duration) (over bool, err error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		w.mu.Lock()
		line, draw, changed := w.line, w.draw, w.changed
		w.mu.Unlock()
		called := draw != nil && draw.Position(number) <= line.Admitted
		if over = line.Phase == "over" && !called; over || called && pause != eagerPause {
			// A place that is called, and still says waiting, must not be read without a pause.
			return over, apiclient.Sleep(ctx, eagerPause)
		}
		select {
		case <-changed:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
