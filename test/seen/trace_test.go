package seen

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/collector"
	"flashsale.dev/seckill/internal/testing/installation"
)

// One trace follows a purchase through two programs and three servers to the commit.
func TestATraceFollowsAPurchaseToTheCommit(t *testing.T) {
	c := collector.Start()
	t.Cleanup(c.Close)
	r := installation.Start(t, suite, installation.Options{Env: []string{"SECKILL_OTLP_ENDPOINT=" + c.URL(), "SECKILL_TRACE_ONE_IN=1", "SECKILL_LOG_LEVEL=debug"}})
	connected(t, r) // what the relay publishes begins no trace
	goods := r.PutUp(t, 10, 1)
	buy(t, r, goods, 1)
	r.Drained(t, goods, time.Minute)

	steps := []string{"POST /:randomPath/decrStock", "reserve in Redis", "publish to RabbitMQ", "write a batch", "commit in MySQL"}
	require.Eventually(t, func() bool {
		return len(c.Named("settle in Redis")) > 0 && len(c.Named(steps[0])) > 0 && len(c.Named(steps[2])) > 0
	},
		20*time.Second, 50*time.Millisecond, "the collector was not told of all steps")
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
	require.True(t, strings.Contains(r.APIs[0].Log(), "trace_id="+above.Trace), "the log does not name the trace")
}

// Buyers who travel together share steps: a step is a part of one's trace and linked with the others'.
func TestSharedStepsAreLinkedWithEveryBuyersTrace(t *testing.T) {
	c := collector.Start()
	t.Cleanup(c.Close)
	r := installation.Start(t, suite, installation.Options{Env: []string{"SECKILL_OTLP_ENDPOINT=" + c.URL(), "SECKILL_TRACE_ONE_IN=1"}})
	connected(t, r)
	rushOn(t, r)
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

// connected waits until the API has its way to RabbitMQ: a node takes buyers without, after a while.
func connected(t *testing.T, r *installation.Rig) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(scrape(t, r.APIs[0]), "seckill_publisher_up 1") },
		30*time.Second, 50*time.Millisecond, "the API does not find RabbitMQ")
}
