package event

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/workers"
)

const (
	// placeInterval bounds how late an event becomes visible.
	placeInterval = 200 * time.Millisecond
	// placeBatch is how many rows one transaction places. Each may hold the events of 500 orders.
	placeBatch = 200
)

// Placer assigns positions to at most limit rows of events and returns how many it placed.
type Placer interface {
	PlaceEvents(ctx context.Context, limit int) (int, error)
}

// Sequencer is the worker that assigns positions. Any number may run; they take turns.
type Sequencer struct {
	Store  Placer
	Placed chan<- struct{} // gets a signal after events were placed; may be nil
	Log    *slog.Logger
}

// Run works until ctx ends, and returns nil.
func (s *Sequencer) Run(ctx context.Context) error {
	return workers.Every(ctx, placeInterval, s.runOnce)
}

func (s *Sequencer) runOnce(ctx context.Context) {
	for ctx.Err() == nil {
		placed, err := s.Store.PlaceEvents(ctx, placeBatch)
		if placed > 0 {
			workers.Signal(s.Placed)
		}
		workers.Warn(ctx, s.Log, "cannot place events, retrying", err)
		if err != nil || placed < placeBatch {
			return
		}
	}
}
