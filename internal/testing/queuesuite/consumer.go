package queuesuite

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/testing/must"
)

// timeout bounds every wait. Every test needs less than a tenth of it.
const timeout = 90 * time.Second

// consumer reads one stream for a test.
type consumer struct {
	t      *testing.T
	stream order.Stream
}

// consume opens a stream and closes it at cleanup.
func consume(t *testing.T, q Queue, shard int) consumer {
	t.Helper()
	s := must.Get(q.Open(t.Context(), shard))(t)
	t.Cleanup(func() { _ = s.Close() })
	return consumer{t: t, stream: s}
}

// take returns the next n deliveries and does not acknowledge them.
func (c consumer) take(n int) []order.Delivery {
	c.t.Helper()
	var got []order.Delivery
	deadline := time.After(timeout)
	for len(got) < n {
		select {
		case d, ok := <-c.stream.Deliveries():
			require.True(c.t, ok, "the stream ended after %d of %d", len(got), n)
			got = append(got, d)
		case <-deadline:
			c.t.Fatalf("%d of %d deliveries in %v", len(got), n, timeout)
		}
	}
	return got
}

// takeAndAck acknowledges the next n deliveries one by one and returns their bodies.
func (c consumer) takeAndAck(n int) []string {
	c.t.Helper()
	var got []string
	for range n {
		d := c.take(1)[0]
		require.NoError(c.t, c.stream.Ack(d.Tag))
		got = append(got, string(d.Body))
	}
	return got
}

func bodies(ds []order.Delivery) []string {
	var all []string
	for _, d := range ds {
		all = append(all, string(d.Body))
	}
	return all
}

// messages returns n bodies.
func messages(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("message ", i)
	}
	return all
}

// publishAll publishes n messages at once.
func publishAll(t *testing.T, p order.Publisher, n int) (confirmed func()) {
	return publish(t, p, goods, slices.Collect(slices.Chunk(messages(n), 1))...)
}

// publish publishes parts concurrently, and the messages of a part one after the other. confirmed
// requires that the queue confirms all of them.
func publish(t *testing.T, p order.Publisher, id int64, parts ...[]string) (confirmed func()) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	var all errgroup.Group
	for _, part := range parts {
		all.Go(func() error {
			for _, body := range part {
				if err := p.Publish(ctx, id, []byte(body)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return func() {
		t.Helper()
		require.NoError(t, all.Wait())
	}
}
