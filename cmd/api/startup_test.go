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

func TestAfterConnecting_WaitsForTheFirstConnection(t *testing.T) {
	var q queue
	ran := make(chan bool, 1)
	w := afterConnecting(&q, time.Hour,
		app.WorkerFunc(func(context.Context) error { ran <- q.Up(); return nil }))
	go func() { q.up.Store(true) }()
	require.NoError(t, w.Run(t.Context()))
	require.True(t, <-ran, "the worker ran before the queue was connected")
}

func TestAfterConnecting_RunsAfterTheTimeout(t *testing.T) {
	ran := false
	w := afterConnecting(&queue{}, time.Millisecond,
		app.WorkerFunc(func(context.Context) error { ran = true; return nil }))
	require.NoError(t, w.Run(t.Context()))
	require.True(t, ran)
}
