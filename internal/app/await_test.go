package app

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// broker is a queue that is down until up is set.
type broker struct {
	Queue
	up atomic.Bool
}

func (b *broker) Up() bool           { return b.up.Load() }
func (b *broker) DownReason() string { return "refused" }

func TestAwaitUp_ReturnsOnceUpOrWithTheCause(t *testing.T) {
	var b broker
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorContains(t, AwaitUp(ctx, &b), "refused")
	go b.up.Store(true)
	require.NoError(t, AwaitUp(t.Context(), &b))
}
