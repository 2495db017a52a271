package servers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// readyPoll is the interval between readiness checks of a starting server. checkTimeout limits one
// check, startTimeout the whole start.
const (
	readyPoll    = 5 * time.Millisecond
	checkTimeout = 2 * time.Second
	startTimeout = 2 * time.Minute
)

// ErrMissing reports that a server's program is not installed. Its message names the fix.
var ErrMissing = errors.New("not installed: run `make services`")

// ErrExternal reports an attempt to kill, pause or restart an external server.
var ErrExternal = errors.New("an external server is left alone")

// errPortTaken marks a start that lost its port to another process. The caller may retry on another
// port.
var errPortTaken = errors.New("port taken")

var portTaken = regexp.MustCompile(`(?i)address already in use|eaddrinuse|dist_port_already_used`)

// Server is the common part of all servers' handles.
type Server struct {
	name string
	proc Process
	// prepare creates the data of a new server in the directory data. It is nil for a server
	// without initial data.
	prepare func(context.Context) error
	data    string
	ready   func(context.Context) error
	// external is set for a server of another owner, which tests never stop.
	external bool

	restarts sync.Mutex
}

// Pid returns the running server's process id, for messages and for /proc. It is 0 for an external
// server.
func (s *Server) Pid() int { return s.proc.Pid() }

// Running reports whether the server's process lives. A paused process counts as running.
func (s *Server) Running() bool { return s.proc.Running() }

// Kill ends the server with SIGKILL, as a crash does, and returns after its end. The data on disk
// is unchanged.
func (s *Server) Kill() error { return s.do("kill", s.proc.Kill) }

// Pause stops the server (SIGSTOP) until Resume. Connections stay open, and the server does not
// answer.
func (s *Server) Pause() error { return s.do("pause", s.proc.Pause) }

// Resume continues a paused server (SIGCONT).
func (s *Server) Resume() error { return s.do("resume", s.proc.Resume) }

// Stop ends the server in an orderly way, or by force after stopGrace. It ignores an external
// server.
func (s *Server) Stop() error { return s.end("stop", s.halt) }

// discard kills a server before the deletion of its data. An orderly end would only take time
// (RabbitMQ's 6 s).
func (s *Server) discard() error { return s.end("end", s.proc.Kill) }

func (s *Server) end(what string, act func() error) error {
	if s.external {
		return nil
	}
	return s.do(what, act)
}

// halt stops the process. It returns an error only if the process still runs: the server's own exit
// code does not matter, and its log shows it.
func (s *Server) halt() error {
	if err := s.proc.Stop(); s.proc.Running() {
		return err
	}
	return nil
}

// Restart stops a running server and starts it on the same ports with the same data. After Kill
// this is the recovery from a crash. It returns when the server is ready.
func (s *Server) Restart(ctx context.Context) error {
	return s.again("restart", s.halt, func() error { return s.launch(ctx) })
}

// RestartEmpty kills the server, deletes its data and starts it on the same ports. It simulates the
// loss of a disk.
func (s *Server) RestartEmpty(ctx context.Context) error {
	wipe := func() error { return os.RemoveAll(s.data) }
	return s.again("restart empty", s.proc.Kill, wipe, func() error { return s.first(ctx) })
}

// Log returns the end of the server's log, at most 8 KiB.
func (s *Server) Log() string { return s.proc.LogTail(8 << 10) }

// WholeLog returns all of the server's log, for a test that requires the absence of a line.
func (s *Server) WholeLog() string { return s.proc.LogTail(math.MaxInt) }

// do runs an act unless the server is external. what names the act in errors.
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

// again runs the steps of a restart up to the first failure.
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

// first prepares the data and starts the server.
func (s *Server) first(ctx context.Context) error {
	if s.prepare != nil {
		if err := s.prepare(ctx); err != nil {
			return err
		}
	}
	return s.launch(ctx)
}

// launch starts the process and waits until it is ready. Otherwise it kills the process and returns
// its log in the error.
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

// awaitReady checks until the server answers, ends, or exceeds startTimeout.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return await(ctx, startTimeout, readyPoll, func(ctx context.Context) error {
		if !s.Running() {
			cancel()
			return errors.New("it ended before it was ready")
		}
		ctx, done := context.WithTimeout(ctx, checkTimeout)
		defer done()
		return s.ready(ctx)
	})
}

// await calls ask until it succeeds, for at most a limit.
func await(
	ctx context.Context, limit, poll time.Duration, ask func(context.Context) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := ask(ctx)
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

// program returns the path of an installed program. Debian's /usr/sbin/rabbitmq-server switches the
// user and leaves a daemon. program prefers the script that it wraps, which does neither.
func program(name string) (string, error) {
	for server, programs := range programsOf {
		if isFetched(server) && slices.Contains(programs, name) {
			return fetched(server, name)
		}
	}
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

const (
	// EnvFetched is a comma list of redis, rabbitmq and mysql. The tests use these servers as
	// scripts/server-fetch unpacked them, not as the machine has them, and MySQL instead of
	// MariaDB.
	EnvFetched = "FLASHSALE_TEST_FETCHED"
	// EnvServersDir names the directory of the unpacked servers, if it is not the default.
	EnvServersDir = "FLASHSALE_TEST_SERVERS_DIR"
)

var programsOf = map[string][]string{
	"redis":    {"redis-server"},
	"rabbitmq": {"rabbitmq-server", "rabbitmqctl", "rabbitmq-queues"},
}

func isFetched(server string) bool {
	return slices.Contains(strings.Split(os.Getenv(EnvFetched), ","), server)
}

// serversDir returns the directory of the unpacked servers. The default is in the XDG cache
// directory on every system.
func serversDir() string {
	dir := os.Getenv(EnvServersDir)
	if cache := os.Getenv("XDG_CACHE_HOME"); dir == "" && cache != "" {
		dir = filepath.Join(cache, "seckill")
	} else if dir == "" {
		dir = filepath.Join(os.Getenv("HOME"), ".cache", "seckill")
	}
	return dir
}

// fetched returns the start script of a program of an unpacked server. scripts/server-fetch writes
// it as its last step.
func fetched(server, name string) (string, error) {
	path := filepath.Join(serversDir(), server, "current", "run-"+name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not unpacked: run `scripts/server-fetch %s` (%w)", name,
			server, err)
	}
	return path, nil
}

// startable is a server that was never started.
type startable interface {
	handle
	first(context.Context) error
}

// launchNew creates a server on free ports and starts it. If another process took a port, it
// creates a new one, at most three times.
func launchNew[S startable](
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

// withProgram is launchNew for a program that must be installed.
func withProgram[S startable](
	ctx context.Context, name string, make func(path string) (S, error),
) (server S, err error) {
	path, err := program(name)
	if err != nil {
		return server, err
	}
	return launchNew(ctx, name, func() (S, error) { return make(path) })
}
