package queuesuite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// publishEach publishes one message after the other. Their order is then known.
func publishEach(ctx context.Context, p order.Publisher, all []string) error {
	for _, body := range all {
		if err := p.Publish(ctx, goods, []byte(body)); err != nil {
			return err
		}
	}
	return nil
}

// publishing is n publishes in flight.
type publishing struct {
	t       *testing.T
	n       int
	results chan error
}

// publishAll starts n concurrent publishes.
func publishAll(t *testing.T, p order.Publisher, n int) publishing {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	results := make(chan error, n)
	for i := range n {
		go func() { results <- p.Publish(ctx, goods, []byte(fmt.Sprint("message ", i))) }()
	}
	return publishing{t: t, n: n, results: results}
}

// confirmed waits for all publishes and requires that the queue confirms them.
func (p publishing) confirmed() {
	p.t.Helper()
	for range p.n {
		require.NoError(p.t, <-p.results)
	}
}
