package memqueue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/memqueue"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/queuesuite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestQueue_KeepsTheContract runs the tests that every queue must pass.
func TestQueue_KeepsTheContract(t *testing.T) {
	queuesuite.Run(t, func(*testing.T) queuesuite.Queue {
		q := memqueue.New(4)
		return queuesuite.Queue{Publisher: q, Source: q}
	})
}

// TestPublish_ReturnsOnlyAfterTheAck checks that the queue confirms a message only after its ack.
// The database is the only durable part of the standalone program. So the queue must confirm
// nothing before the commit.
func TestPublish_ReturnsOnlyAfterTheAck(t *testing.T) {
	q := memqueue.New(1)
	s := must.Get(q.Open(t.Context(), 0))(t)
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

// TestPublish_EndsWithItsContext checks that an ended context ends a publish. The queue then drops
// an undelivered message and keeps a delivered one.
func TestPublish_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memqueue.New(1)
		published := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { published <- q.Publish(ctx, 1, []byte("withdrawn")) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-published, context.Canceled)
		ctx, cancel = context.WithCancel(t.Context())
		s := must.Get(q.Open(t.Context(), 0))(t)
		go func() { published <- q.Publish(ctx, 1, []byte("delivered")) }()
		<-s.Deliveries()
		cancel()
		require.ErrorIs(t, <-published, context.Canceled)
		require.NoError(t, s.Close())
		require.Error(t, s.Ack(1), "a closed stream refuses an ack")
		s = must.Get(q.Open(t.Context(), 0))(t)
		d := <-s.Deliveries()
		require.Equal(t, "delivered", string(d.Body))
		require.NoError(t, s.Ack(d.Tag))
		require.NoError(t, s.Close())
	})
}

// TestStream_DeliversNoMoreThanThePrefetch checks that a stream with 512 unacknowledged messages
// gets no other message.
func TestStream_DeliversNoMoreThanThePrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memqueue.New(1)
		published := make(chan error)
		for range 513 {
			go func() { published <- q.Publish(t.Context(), 1, nil) }()
		}
		s := must.Get(q.Open(t.Context(), 0))(t)
		for range 512 {
			<-s.Deliveries()
		}
		synctest.Wait()
		select {
		case <-s.Deliveries():
			t.Fatal("more unacknowledged messages than the prefetch allows")
		default:
		}
		require.NoError(t, s.Ack(512))
		require.NoError(t, s.Ack((<-s.Deliveries()).Tag))
		for range 513 {
			require.NoError(t, <-published)
		}
		require.NoError(t, s.Close())
	})
}
