package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Run starts stages of workers in order, and waits until ctx ends or a worker fails. Then it stops
// the stages in reverse order. A stage finishes its work before the next one stops; all stages
// share the timeout.
func Run(ctx context.Context, timeout time.Duration, stages ...[]Worker) error {
	failed, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	running := make([]*stage, 0, len(stages))
	for _, workers := range stages {
		running = append(running, start(context.WithoutCancel(ctx), workers, fail))
	}
	<-failed.Done()
	deadline := time.After(timeout)
	var errs []error
	for _, s := range slices.Backward(running) {
		s.stop()
		select {
		case err := <-s.done:
			errs = append(errs, err)
		case <-deadline:
			return errors.Join(append(errs,
				fmt.Errorf("shutdown took longer than %s (SECKILL_SHUTDOWN_TIMEOUT)", timeout))...)
		}
	}
	return errors.Join(errs...)
}

// stage is a group of workers that start and stop together.
type stage struct {
	stop context.CancelFunc
	done chan error
}

// start runs the workers of a stage. The first one that fails cancels the others and the program.
func start(ctx context.Context, workers []Worker, fail context.CancelCauseFunc) *stage {
	ctx, cancel := context.WithCancel(ctx)
	s := &stage{stop: cancel, done: make(chan error, 1)}
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		g.Go(func() error {
			err := w.Run(ctx)
			if err != nil {
				fail(err)
			}
			return err
		})
	}
	go func() { s.done <- g.Wait() }()
	return s
}

// OnStop returns a worker that only calls f when it stops.
func OnStop(f func()) Worker {
	return WorkerFunc(func(ctx context.Context) error {
		<-ctx.Done()
		f()
		return nil
	})
}

// Serve returns a worker that serves HTTP on a listener. When it stops, it accepts no more
// connections and finishes the accepted requests. After four fifths of the timeout it closes the
// connections that are left, such as a long download. The last fifth is for the stages that Run
// stops afterwards.
func Serve(
	server *http.Server, listener net.Listener, timeout time.Duration, log *slog.Logger,
) Worker {
	return WorkerFunc(func(ctx context.Context) error {
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(envelopeListener{listener, log}) }()
		select {
		case err := <-ended:
			return fmt.Errorf("serve http on %s: %w", listener.Addr(), err)
		case <-ctx.Done():
		}
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout/5*4)
		defer cancel()
		err := server.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			log.Info("closing connections that have not ended", "addr", listener.Addr().String(),
				"after", timeout/5*4)
			err = server.Close()
		}
		return err
	})
}
