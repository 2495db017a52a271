package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app"
)

type queue struct{ up atomic.Bool }

func (q *queue) Up() bool { return q.up.Load() }

func TestANodeTakesNobodyBeforeItsFirstConnection(t *testing.T) {
	var q queue
	ran := make(chan bool, 1)
	w := onceConnected(&q, time.Hour, app.WorkerFunc(func(context.Context) error { ran <- q.Up(); return nil }))
	go func() { q.up.Store(true) }()
	require.NoError(t, w.Run(t.Context()))
	require.True(t, <-ran, "it ran before the queue was up")
}

func TestABrokerThatIsAwayDoesNotKeepANodeFromStarting(t *testing.T) {
	ran := false
	w := onceConnected(&queue{}, time.Millisecond, app.WorkerFunc(func(context.Context) error { ran = true; return nil }))
	require.NoError(t, w.Run(t.Context()))
	require.True(t, ran)
}
