package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testing/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recording returns a worker that sends its name when it stops.
func recording(name string, order chan<- string) Worker {
	return WorkerFunc(func(ctx context.Context) error {
		<-ctx.Done()
		order <- name
		return nil
	})
}

func TestRun_StopsStagesInReverse(t *testing.T) {
	order := make(chan string, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Run(ctx, time.Minute, []Worker{recording("servers", order)},
		[]Worker{recording("workers", order)}, []Worker{recording("http", order)})
	require.NoError(t, err)
	require.Equal(t, []string{"http", "workers", "servers"}, []string{<-order, <-order, <-order})
}

func TestRun_OneFailureStopsAll(t *testing.T) {
	broken := errors.New("broken")
	order := make(chan string, 1)
	err := Run(t.Context(), time.Minute, []Worker{recording("servers", order)},
		[]Worker{WorkerFunc(func(context.Context) error { return broken })})
	require.ErrorIs(t, err, broken)
	require.Equal(t, "servers", <-order)
}

func TestRun_ReportsWorkersThatExceedTheTimeout(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stuck := WorkerFunc(func(context.Context) error { <-release; return nil })
	require.ErrorContains(t, Run(ctx, time.Millisecond, []Worker{stuck}),
		"shutdown took longer than 1ms")
}

func TestServe_FinishesAcceptedRequests(t *testing.T) {
	listener := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		_, _ = io.WriteString(w, "finished")
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	go func() {
		ended <- Run(ctx, time.Minute,
			[]Worker{Serve(server, listener, time.Minute, slog.Default())})
	}()
	answered := make(chan string, 1)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://"+listener.Addr().String(), nil)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			answered <- err.Error()
			return
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		answered <- string(text)
	}()
	<-entered
	stop()
	close(leave)
	require.Equal(t, "finished", <-answered)
	require.NoError(t, <-ended)
}

// TestServe_ClosesWhatDoesNotEnd checks that neither a request that never ends nor a connection
// without a request makes a stop fail.
func TestServe_ClosesWhatDoesNotEnd(t *testing.T) {
	listener := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	entered := make(chan struct{})
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
		})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	serve := Serve(server, listener, 100*time.Millisecond, slog.New(slog.DiscardHandler))
	go func() { ended <- Run(ctx, time.Minute, []Worker{serve}) }()
	silent := must.Get((&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String()))(t)
	defer silent.Close()
	asking := must.Get((&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String()))(t)
	defer asking.Close()
	_, err := io.WriteString(asking, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	<-entered
	stop()
	require.NoError(t, <-ended)
	_, err = asking.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// broker is a queue that is down until up is set.
type broker struct {
	Queue
	up atomic.Bool
}

func (b *broker) DownReason() error {
	if b.up.Load() {
		return nil
	}
	return errors.New("refused")
}

func TestAwaitUp_ReturnsOnceUpOrWithTheCause(t *testing.T) {
	var b broker
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorContains(t, AwaitUp(ctx, &b), "refused")
	go b.up.Store(true)
	require.NoError(t, AwaitUp(t.Context(), &b))
}
