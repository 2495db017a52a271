package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// readyPoll is how often a starting server is asked whether it is ready; checkTimeout bounds one question.
const (
	readyPoll    = 5 * time.Millisecond
	checkTimeout = 2 * time.Second
)

// ErrMissing is returned where a server's program is not installed; the message says how to get it.
var ErrMissing = errors.New("not installed: run `make services`")

// errPortTaken marks a start that lost its port to somebody else and may be tried on another.
var errPortTaken = errors.New("port taken")

var portTaken = regexp.MustCompile(`(?i)address already in use|eaddrinuse`)

// Server is what the handles of all servers have in common.
type Server struct {
	name    string
	proc    process
	timeout time.Duration // for one start
	// prepare makes the data of a server that has never run; wipe removes all data.
	prepare func(context.Context) error
	wipe    func() error
	ready   func(context.Context) error
	// external servers belong to somebody else and are never touched.
	external bool

	restarts sync.Mutex
}

// ErrExternal is returned when a server that was not started here is to be killed, paused or restarted.
var ErrExternal = errors.New("an external server is left alone")

// Pid is the running server's process id, for messages and for reading /proc; 0 for an external server.
func (s *Server) Pid() int {
	pid, _ := s.proc.current()
	return pid
}

// Running reports whether the server's process lives, be it paused.
func (s *Server) Running() bool { return s.proc.running() }

// Kill ends the server with SIGKILL, as a crash would, and returns when it is gone. The data stays as it was on disk.
func (s *Server) Kill() error { return s.do("kill", s.proc.kill) }

// Pause stops the server's clock (SIGSTOP): connections stay open, nothing is answered, until Resume.
func (s *Server) Pause() error { return s.do("pause", s.proc.pause) }

// Resume lets a paused server go on (SIGCONT).
func (s *Server) Resume() error {
	return s.do("resume", func() error { return s.proc.signal(syscall.SIGCONT) })
}

// Stop ends the server in an orderly way, by force after 15 s. An external server is left alone, without an error.
func (s *Server) Stop() error {
	if s.external {
		return nil
	}
	return s.do("stop", s.proc.stop)
}

// discard kills a server whose data is about to be removed: an orderly end would only take time (RabbitMQ's 6 s).
func (s *Server) discard() error {
	if s.external {
		return nil
	}
	return s.do("end", s.proc.kill)
}

// Restart stops the server where it still runs and starts it on the same ports with the same data. After Kill this is the
// recovery from a crash. It returns when the server is ready.
func (s *Server) Restart(ctx context.Context) error {
	return s.do("restart", func() error {
		s.restarts.Lock()
		defer s.restarts.Unlock()
		if err := s.proc.stop(); err != nil {
			return err
		}
		return s.launch(ctx)
	})
}

// RestartEmpty kills the server, removes all its data and starts it on the same ports, as after the loss of a disk.
func (s *Server) RestartEmpty(ctx context.Context) error {
	return s.do("restart empty", func() error {
		s.restarts.Lock()
		defer s.restarts.Unlock()
		if err := s.proc.kill(); err != nil {
			return err
		}
		if err := s.wipe(); err != nil {
			return err
		}
		return s.first(ctx)
	})
}

// Log is the end of what the server wrote to its log, at most 8 KiB.
func (s *Server) Log() string { return tail(s.proc.log, 8<<10) }

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

// first makes the data and launches.
func (s *Server) first(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.launch(ctx)
}

// launch starts the process and waits until it is ready; one that does not get there is killed, its log in the error.
func (s *Server) launch(ctx context.Context) error {
	if err := s.proc.start(); err != nil {
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
	return errors.Join(fmt.Errorf("%w; the end of its log:\n%s", err, log), s.proc.kill())
}

// awaitReady asks until the server answers, has ended, or its time is up.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, ended := s.proc.current()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := s.ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("not ready in %v (%w): %w", s.timeout, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func (s *Server) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return s.ready(ctx)
}

// program returns the first of paths that exists.
func program(name string, paths ...string) (string, error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is %w (searched %v)", name, ErrMissing, paths)
}

// retryPorts calls start until it does not fail for a taken port, three times at most.
func retryPorts[T any](start func() (T, error)) (T, error) {
	var server T
	var err error
	for range 3 {
		if server, err = start(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	return server, err
}
