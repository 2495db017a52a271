package buyer

import (
	"context"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/waitingroom"
)

// statusPause is the time between two readings of a status, which may be a second old.
const statusPause = 200 * time.Millisecond

// Monitor reads the public status of a waiting room for all buyers of a run. Each buyer computes
// its position from it, as the documentation of the draw describes.
type Monitor struct {
	mu      sync.Mutex
	line    Line
	draw    *waitingroom.Draw
	first   string        // commitment before the draw
	changed chan struct{} // closed at the next change
}

// NewMonitor returns a monitor that has read nothing.
func NewMonitor() *Monitor { return &Monitor{changed: make(chan struct{})} }

// Run reads the status until ctx ends. A reading that fails is repeated.
func (m *Monitor) Run(ctx context.Context, c apiclient.Client, goodsID string) {
	for apiclient.Sleep(ctx, statusPause) == nil {
		if line, err := ReadLine(ctx, c, goodsID); err == nil {
			m.set(line)
		}
	}
}

func (m *Monitor) set(line Line) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == "" {
		m.first = line.Commitment
	}
	if m.draw == nil && line.Seed != "" {
		m.draw, _ = line.Draw() // the verdict reads it again, and reports an error
	}
	if line.Admitted != m.line.Admitted || line.Phase != m.line.Phase {
		close(m.changed)
		m.changed = make(chan struct{})
	}
	m.line = line
}

// Commitment returns the first commitment to a seed that the monitor saw.
func (m *Monitor) Commitment() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first
}

// await waits until the turn of a number seems to have come, or for the habit's pause. over reports
// that the room is over. An eager buyer reads its place after each pause, called or not.
func (m *Monitor) await(ctx context.Context, number int64, habit Habit) (over bool, err error) {
	timer := time.NewTimer(habit.pause())
	defer timer.Stop()
	for {
		m.mu.Lock()
		line, draw, changed := m.line, m.draw, m.changed
		m.mu.Unlock()
		called := draw != nil && draw.Position(number) <= line.Admitted
		over = line.Phase == "over" && !called
		if over || called && habit != Eager {
			// A called place may still be answered as waiting, so it is read after a pause.
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
