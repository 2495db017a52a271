package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/collector"
	"flashsale.dev/seckill/internal/testing/installation"
)

// TestTracing checks the spans of one purchase, then those of a rush, on one installation.
func TestTracing(t *testing.T) {
	c := collector.Start()
	t.Cleanup(c.Close)
	r := installation.Start(t, suite, installation.Options{Env: []string{
		"SECKILL_OTLP_ENDPOINT=" + c.URL(), "SECKILL_TRACE_ONE_IN=1", "SECKILL_LOG_LEVEL=debug",
	}})
	awaitConnected(t, r) // orders that the relay publishes begin no trace
	t.Run("Purchase_OneTraceReachesTheCommit", func(t *testing.T) { tracePurchase(t, r, c) })
	t.Run("Rush_SharedStepsLinkEachBuyersTrace", func(t *testing.T) { traceRush(t, r, c) })
}

// tracePurchase follows one trace through two programs and three servers to the commit.
func tracePurchase(t *testing.T, r *installation.Installation, c *collector.Collector) {
	goods := r.PutUp(t, 10, 1)
	buy(t, r, goods, 1)
	r.Drained(t, goods, time.Minute)

	steps := []string{
		"POST /:randomPath/decrStock", "reserve in Redis", "publish to RabbitMQ",
		"write a batch", "commit in MySQL",
	}
	require.Eventually(t, func() bool {
		for _, step := range append(steps, "settle in Redis") {
			if len(c.Named(step)) == 0 {
				return false
			}
		}
		return true
	}, time.Minute, 50*time.Millisecond, "the collector has not received all steps")
	above := c.Named(steps[0])[0]
	require.Equal(t, "seckill-api", above.Service)
	for _, step := range steps[1:] {
		spans := c.Named(step)
		require.Len(t, spans, 1, step)
		require.Equal(t, above.Trace, spans[0].Trace, step)
		require.Equal(t, above.ID, spans[0].Parent, "%s is not a part of %s", step, above.Name)
		above = spans[0]
	}
	require.Equal(t, "seckill-order-consumer", above.Service)
	require.Equal(t, above.Trace, c.Named("settle in Redis")[0].Trace)
	require.Eventually(t, func() bool {
		return strings.Contains(r.APIs[0].Log(), "trace_id="+above.Trace)
	}, time.Minute, 50*time.Millisecond, "the log does not name the trace")
}

// traceRush checks that a step of a batch is part of one buyer's trace and linked to the others.
func traceRush(t *testing.T, r *installation.Installation, c *collector.Collector) {
	sellOut(t, r)
	purchases := func() int { return len(c.Named("POST /:randomPath/decrStock")) }
	require.Eventually(t, func() bool {
		reached := map[string]bool{}
		for _, s := range c.Named("reserve in Redis") {
			reached[s.Trace] = true
			for _, link := range s.Links {
				reached[link] = true
			}
		}
		return purchases() >= 200 && len(reached) >= purchases()
	}, time.Minute, 100*time.Millisecond, "some buyers' traces do not reach Redis")
	require.Eventually(t, func() bool {
		for _, s := range c.Named("write a batch") {
			if len(s.Links) > 0 {
				return true
			}
		}
		return false
	}, time.Minute, 100*time.Millisecond, "no batch is linked with more than one message")
}

// awaitConnected waits until the API is connected to RabbitMQ, because a node also serves
// buyers without it.
func awaitConnected(t *testing.T, r *installation.Installation) {
	require.Eventually(t, func() bool {
		return r.APIs[0].Metric(t, "seckill_publisher_up") == 1
	}, time.Minute, 50*time.Millisecond, "the API does not find RabbitMQ")
}
