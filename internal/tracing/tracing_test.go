package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/logging"
	"flashsale.dev/seckill/internal/testing/collector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a tracing with a collector, and a function that exports all spans.
func start(t *testing.T, oneIn int) (*Tracing, *collector.Collector, func()) {
	t.Helper()
	c := collector.Start()
	t.Cleanup(c.Close)
	tr, err := Start(t.Context(), config.Trace{Endpoint: c.URL(), OneIn: oneIn}, "a-service", "v1",
		slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return tr, c, func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, tr.Run(ctx))
	}
}

func TestBegin_LinksTheTracesOfABatch(t *testing.T) {
	tr, c, end := start(t, 1)
	ctx, answered := tr.Request(context.WithValue(t.Context(), logging.RequestIDKey{}, "first"),
		httptest.NewRequest("POST", "/x/decrStock", nil), "/:randomPath/decrStock")
	other, otherAnswered := tr.Request(t.Context(),
		httptest.NewRequest("POST", "/y/decrStock", nil), "/:randomPath/decrStock")
	require.NotEqual(t, logging.TraceID(ctx), logging.TraceID(other))
	mark, otherMark := tr.Mark(ctx), tr.Mark(other)
	require.Contains(t, mark, logging.TraceID(ctx))

	batch, done := tr.Begin(other, "batch", "", mark,
		otherMark) // Begin ignores the context's own trace
	require.Equal(t, logging.TraceID(ctx), logging.TraceID(batch))
	part, partDone := tr.Begin(batch, "part")
	require.Equal(t, logging.TraceID(ctx), logging.TraceID(part))
	partDone(errors.New("no connection"))
	done(nil)
	answered(503, "UNAVAILABLE")
	otherAnswered(202, "QUEUED")
	end()

	require.Equal(t, "a-service", c.Named("batch")[0].Service)
	requests := c.Named("POST /:randomPath/decrStock")
	require.Len(t, requests, 2)
	batchSpan, partSpan := c.Named("batch")[0], c.Named("part")[0]
	require.Equal(t, requests[0].ID, batchSpan.Parent)
	require.Equal(t, []string{logging.TraceID(other)}, batchSpan.Links)
	require.Equal(t, batchSpan.ID, partSpan.Parent)
	require.Equal(t, "no connection", partSpan.Error)
	require.Equal(t, "UNAVAILABLE", requests[0].Error)
	require.Equal(t, "first", requests[0].Attributes["seckill.request_id"])
	require.Empty(t, requests[1].Error)
}

// TestRequest_LinksItsCallersTrace checks that a request starts its own trace with a link to its
// caller's. The caller's sampling flag has no effect.
func TestRequest_LinksItsCallersTrace(t *testing.T) {
	tr, c, end := start(t, 1)
	const callers = "4bf92f3577b34da6a3ce929d0e0e4736"
	r := httptest.NewRequest("GET", "/sales", nil)
	r.Header.Set("Traceparent", "00-"+callers+"-00f067aa0ba902b7-01")
	ctx, answered := tr.Request(t.Context(), r, "/sales")
	require.NotEqual(t, callers, logging.TraceID(ctx))
	answered(200, "OK")
	end()
	require.Equal(t, []string{callers}, c.Named("GET /sales")[0].Links)

	tr, c, end = start(t, 1_000_000_000)
	ctx, answered = tr.Request(t.Context(), r, "/sales")
	require.Empty(t, logging.TraceID(ctx), "the caller's sampling decision must not apply")
	require.Empty(t, tr.Mark(ctx))
	answered(200, "OK")
	end()
	require.Empty(t, c.Spans())
}

func TestBegin_IgnoresRequestsThatAreNotSampled(t *testing.T) {
	tr, c, end := start(t, 1)
	sampled, answered := tr.Request(t.Context(), httptest.NewRequest("GET", "/sales", nil),
		"/sales")
	step, done := tr.Begin(sampled, "a batch of others", "", "")
	require.Empty(t, tr.Mark(step))
	require.Empty(t, logging.TraceID(step))
	_, partDone := tr.Begin(step, "part")
	partDone(nil)
	done(nil)
	_, done = tr.Begin(t.Context(), "a batch with invalid marks", "not a traceparent", "00-x-y-z")
	done(nil)
	answered(200, "OK")
	end()
	require.Len(t, c.Spans(), 1)
}

// TestRequest_InventedMethodIsNoName checks that strangers can't name spans.
func TestRequest_InventedMethodIsNoName(t *testing.T) {
	tr, c, end := start(t, 1)
	_, answered := tr.Request(t.Context(), httptest.NewRequest("INVENTED", "/sales", nil), "other")
	answered(405, "METHOD_NOT_ALLOWED")
	end()
	require.Len(t, c.Named("HTTP other"), 1)
}

func TestRequest_RecordsContainTheTraceID(t *testing.T) {
	tr, _, end := start(t, 1)
	defer end()
	ctx, answered := tr.Request(t.Context(), httptest.NewRequest("GET", "/sales", nil), "/sales")
	defer answered(200, "OK")
	var text bytes.Buffer
	logging.Logger(&text, slog.LevelInfo, "json").InfoContext(ctx, "message")
	require.Contains(t, text.String(), `"trace_id":"`+logging.TraceID(ctx)+`"`)
}

func TestStart_WithoutACollectorTracesNothing(t *testing.T) {
	tr, err := Start(t.Context(), config.Trace{OneIn: 1}, "", "", nil)
	require.NoError(t, err)
	require.Nil(t, tr)
	require.Nil(t, tr.Orders())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, tr.Run(ctx))
}

// TestRun_CollectorThatIsDownIsLoggedOnce checks that the failed exports are one record of the log,
// which names the setting.
func TestRun_CollectorThatIsDownIsLoggedOnce(t *testing.T) {
	c := collector.Start()
	url := c.URL()
	c.Close() // nothing listens there now
	var text bytes.Buffer
	tr, err := Start(t.Context(), config.Trace{Endpoint: url, OneIn: 1}, "a-service", "v1",
		logging.Logger(&text, slog.LevelInfo, "json"))
	require.NoError(t, err)
	for range 2 {
		_, answered := tr.Request(t.Context(), httptest.NewRequest("GET", "/sales", nil), "/sales")
		answered(200, "OK")
		require.NoError(t, tr.provider.ForceFlush(t.Context()), "the error would go to stderr")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, tr.Run(ctx))
	require.Equal(t, 1, bytes.Count(text.Bytes(), []byte("SECKILL_OTLP_ENDPOINT")), text.String())
}
