package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// A starting server is asked every readyPoll whether it is ready. checkTimeout bounds one question,
// startTimeout the whole start.
const (
	readyPoll    = 5 * time.Millisecond
	checkTimeout = 2 * time.Second
	startTimeout = 2 * time.Minute
)

// ErrMissing is returned where a server's program is not installed; the message says how to get it.
var ErrMissing = errors.New("not installed: run `make services`")

// ErrExternal is returned when a server that was not started here is to be killed, paused or
// restarted.
var ErrExternal = errors.New("an external server is left alone")

// errPortTaken marks a start that lost its port to another process and may be tried on another
// port.
var errPortTaken = errors.New("port taken")

var portTaken = regexp.MustCompile(`(?i)address already in use|eaddrinuse`)

// Server is what the handles of all servers have in common.
type Server struct {
	name string
	proc Process
	// prepare makes the data of a server that has never run, in the directory data; nil where there
	// is nothing to make.
	prepare func(context.Context) error
	data    string
	ready   func(context.Context) error
	// external servers belong to another owner and are never touched.
	external bool

	restarts sync.Mutex
}

// Pid is the running server's process id, for messages and for reading /proc; 0 for an external
// server.
func (s *Server) Pid() int { return s.proc.Pid() }

// Running reports whether the server's process lives, be it paused.
func (s *Server) Running() bool { return s.proc.Running() }

// Kill ends the server with SIGKILL, as a crash would, and returns when it is gone. The data stays
// as it was on disk.
func (s *Server) Kill() error { return s.do("kill", s.proc.Kill) }

// Pause stops the server's clock (SIGSTOP): connections stay open, nothing is answered, until
// Resume.
func (s *Server) Pause() error { return s.do("pause", s.proc.Pause) }

// Resume lets a paused server go on (SIGCONT).
func (s *Server) Resume() error { return s.do("resume", s.proc.Resume) }

// Stop ends the server in an orderly way, by force after stopGrace. An external server is left
// alone, without an error.
func (s *Server) Stop() error { return s.end("stop", s.halt) }

// discard kills a server whose data is about to be removed: an orderly end would only take time
// (RabbitMQ's 6 s).
func (s *Server) discard() error { return s.end("end", s.proc.Kill) }

func (s *Server) end(what string, act func() error) error {
	if s.external {
		return nil
	}
	return s.do(what, act)
}

// halt stops the process. How a server ended stands in its log: only one that still runs is an
// error.
func (s *Server) halt() error {
	if err := s.proc.Stop(); s.proc.Running() {
		return err
	}
	return nil
}

// Restart stops the server where it still runs and starts it on the same ports with the same data.
// After Kill this is the recovery from a crash. It returns when the server is ready.
func (s *Server) Restart(ctx context.Context) error {
	return s.again("restart", s.halt, func() error { return s.launch(ctx) })
}

// RestartEmpty kills the server, removes all its data and starts it on the same ports, as after the
// loss of a disk.
func (s *Server) RestartEmpty(ctx context.Context) error {
	wipe := func() error { return os.RemoveAll(s.data) }
	return s.again("restart empty", s.proc.Kill, wipe, func() error { return s.first(ctx) })
}

// Log is the end of what the server wrote to its log, at most 8 KiB.
func (s *Server) Log() string { return s.proc.LogTail(8 << 10) }

func (s *Server) do(what string, act func() error) error {
	err := ErrExternal
	if !s.external {
		err = act()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, s.name, err)
	}
	return nil
}

// again takes the steps of a restart up to the first that fails.
func (s *Server) again(what string, steps ...func() error) error {
	s.restarts.Lock()
	defer s.restarts.Unlock()
	for _, step := range steps {
		if err := s.do(what, step); err != nil {
			return err
		}
	}
	return nil
}

// first makes the data and launches.
func (s *Server) first(ctx context.Context) error {
	if s.prepare != nil {
		if err := s.prepare(ctx); err != nil {
			return err
		}
	}
	return s.launch(ctx)
}

// launch starts the process and waits until it is ready; one that does not get there is killed, its
// log in the error.
func (s *Server) launch(ctx context.Context) error {
	if err := s.proc.Start(); err != nil {
		return err
	}
	err := s.awaitReady(ctx)
	if err == nil {
		return nil
	}
	log := s.Log()
	if portTaken.MatchString(log) {
		err = errors.Join(err, errPortTaken)
	}
	return errors.Join(fmt.Errorf("%w; the end of its log:\n%s", err, log), s.proc.Kill())
}

// awaitReady asks until the server answers, has ended, or its time is up.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return await(ctx, readyPoll, func() error {
		if !s.Running() {
			cancel()
			return errors.New("it ended before it was ready")
		}
		question, done := context.WithTimeout(ctx, checkTimeout)
		defer done()
		return s.ready(question)
	})
}

// await asks until there is no error or ctx ends.
func await(ctx context.Context, poll time.Duration, ask func() error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// program finds an installed program. Debian's /usr/sbin/rabbitmq-server switches user and leaves a
// daemon; the script that it wraps does neither and is found first.
func program(name string) (string, error) {
	dirs := []string{
		"/usr/lib/rabbitmq/bin", "/opt/homebrew/opt/rabbitmq/sbin",
		"/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin",
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is %w (searched %v)", name, ErrMissing, dirs)
}

// boots is a server that was made and has not run yet.
type boots interface {
	handle
	first(context.Context) error
}

// launchNew makes a server on free ports and starts it. Where a port was taken meanwhile, it makes
// another, three times at most.
func launchNew[S boots](
	ctx context.Context, name string, make func() (S, error),
) (server S, err error) {
	for range 3 {
		if server, err = make(); err == nil {
			if err = server.first(ctx); err != nil {
				err = errors.Join(err, server.discard())
			}
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		var none S
		return none, fmt.Errorf("start %s: %w", name, err)
	}
	return server, nil
}

// withProgram is launchNew of a program that has to be installed.
func withProgram[S boots](
	ctx context.Context, name string, make func(path string) (S, error),
) (server S, err error) {
	path, err := program(name)
	if err != nil {
		return server, err
	}
	return launchNew(ctx, name, func() (S, error) { return make(path) })
}
