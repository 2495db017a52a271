package memqueue_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/memqueue"
	"flashsale.dev/seckill/internal/testing/queuesuite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	queuesuite.Run(t, func(*testing.T) queuesuite.Queue {
		q := memqueue.New(memqueue.Options{Shards: 4})
		return queuesuite.Queue{Publisher: q, Source: q}
	})
}

// Standalone has nothing durable but its database, so a confirm may be said only once the orders are in it.
func TestPublishIsConfirmedByTheAckAlone(t *testing.T) {
	q := memqueue.New(memqueue.Options{})
	s, err := q.Open(t.Context(), 0)
	require.NoError(t, err)
	defer s.Close()
	published := make(chan error, 1)
	go func() { published <- q.Publish(t.Context(), 1, []byte("x")) }()
	d := <-s.Deliveries()
	select {
	case err := <-published:
		t.Fatalf("confirmed before the ack: %v", err)
	default:
	}
	require.NoError(t, s.Ack(d.Tag))
	require.NoError(t, <-published)
	require.Error(t, s.Ack(d.Tag), "a tag is acknowledged once")
}

func TestGivenUpMessage(t *testing.T) {
	q := memqueue.New(memqueue.Options{Capacity: 1})
	ctx, cancel := context.WithCancel(t.Context())
	t.Run("nobody has seen it: it is withdrawn and its room is free", func(t *testing.T) {
		published := make(chan error, 2)
		go func() { published <- q.Publish(ctx, 1, []byte("withdrawn")) }()
		go func() { published <- q.Publish(ctx, 1, []byte("found no room")) }()
		cancel()
		require.ErrorIs(t, <-published, context.Canceled)
		require.ErrorIs(t, <-published, context.Canceled)
	})
	t.Run("it was handed out: it stays, and comes again", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := q.Open(t.Context(), 0)
		require.NoError(t, err)
		published := make(chan error, 1)
		go func() { published <- q.Publish(ctx, 1, []byte("seen")) }()
		<-s.Deliveries()
		cancel()
		require.ErrorIs(t, <-published, context.Canceled)
		require.NoError(t, s.Close())
		require.Error(t, s.Ack(1), "a closed stream takes no ack")
		s, err = q.Open(t.Context(), 0)
		require.NoError(t, err)
		d := <-s.Deliveries()
		require.Equal(t, "seen", string(d.Body))
		require.NoError(t, s.Ack(d.Tag))
		require.NoError(t, s.Close())
	})
}

func TestAFullShardMakesPublishWait(t *testing.T) {
	q := memqueue.New(memqueue.Options{Capacity: 2, Prefetch: 1})
	published := make(chan error, 3)
	for range 3 {
		go func() { published <- q.Publish(t.Context(), 1, []byte("x")) }()
	}
	s, err := q.Open(t.Context(), 0)
	require.NoError(t, err)
	for range 3 {
		d := <-s.Deliveries()
		select {
		case <-s.Deliveries():
			t.Fatal("more out than the prefetch allows")
		default:
		}
		require.NoError(t, s.Ack(d.Tag))
		require.NoError(t, <-published)
	}
	require.NoError(t, s.Close())
}
