package servers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a process may take over an orderly end before it is killed: longer than the
// project's own programs give themselves.
const stopGrace = 45 * time.Second

// errNotRunning is the result of a signal to a process that has ended.
var errNotRunning = errors.New("not running")

// Process is one child process and its owner; it can be started again once it has ended. The kernel
// ends it with the tests.
type Process struct {
	Path string
	Args []string
	Env  []string // nil means this process's own
	Dir  string
	File string // takes stdout and stderr, appended to
	// Workers of its own would outlive a kill: the kernel asks it to end instead (SIGTERM) when its
	// parent dies.
	Workers bool

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed once the child has been waited for
	err  error         // how it ended, once done
}

// Start runs the child, in a process group of its own so that a Ctrl-C at the terminal reaches the
// tests first.
func (p *Process) Start() error {
	out, err := os.OpenFile(p.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer out.Close() // the child holds its own copy
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.Env, p.Dir, out, out
	end := syscall.SIGKILL
	if p.Workers {
		end = syscall.SIGTERM
	}
	cmd.SysProcAttr = childAttributes(end)
	started, done := make(chan error, 1), make(chan struct{})
	go own(p, cmd, started, done)
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.Path, err)
	}
	p.mu.Lock()
	p.cmd, p.done = cmd, done
	p.mu.Unlock()
	return nil
}

// own starts the child and waits for it on one thread of its own. The kernel's parent-death signal
// is tied to the thread that forked, not to the process: on a shared thread, Go's ending an idle
// thread would kill the server.
func own(p *Process, cmd *exec.Cmd, started chan<- error, done chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(done)
	err := cmd.Start()
	started <- err
	if err == nil {
		p.err = cmd.Wait()
	}
}

// current returns the child's pid and the channel that closes when it ends; pid 0 if none was ever
// started.
func (p *Process) current() (int, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0, nil
	}
	return p.cmd.Process.Pid, p.done
}

// Pid is the child's, be it over; 0 if none was ever started.
func (p *Process) Pid() int {
	pid, _ := p.current()
	return pid
}

// Running reports whether the child has been started and not yet waited for.
func (p *Process) Running() bool {
	pid, done := p.current()
	select {
	case <-done:
		return false
	default:
		return pid != 0
	}
}

// signal sends sig to the child's whole group, helpers included.
func (p *Process) signal(sig syscall.Signal) error {
	if !p.Running() {
		return errNotRunning
	}
	if err := syscall.Kill(-p.Pid(), sig); err != nil {
		return fmt.Errorf("send %v to pid %d: %w", sig, p.Pid(), err)
	}
	return nil
}

// Pause stops the child's threads (SIGSTOP) and returns when they all have.
func (p *Process) Pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for !paused(p.Pid()) {
		if !p.Running() {
			return errNotRunning
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Resume lets a paused child go on (SIGCONT).
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Kill ends the child at once and returns when it is gone. A child that has ended already is no
// error.
func (p *Process) Kill() error {
	err := p.signal(syscall.SIGKILL)
	if errors.Is(err, errNotRunning) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if err == nil {
		_, done := p.current()
		<-done
	}
	return err
}

// Stop asks the child to end (SIGTERM), wakes it in case it is paused, kills it after stopGrace,
// and returns how it ended.
func (p *Process) Stop() error {
	pid, done := p.current()
	if !p.Running() {
		return errNotRunning
	}
	// Only the child itself is asked: its helpers (Erlang's, a shell's) end with it, and would take
	// it for a crash.
	_ = syscall.Kill(pid, syscall.SIGTERM)
	_ = p.Resume()
	select {
	case <-done:
	case <-time.After(stopGrace):
		if err := p.Kill(); err != nil {
			return err
		}
	}
	return p.err
}

// String is the end of what the child wrote, for messages.
func (p *Process) String() string { return p.LogTail(16 << 10) }

// LogTail returns the last n bytes that the child wrote, or why they cannot be read: it serves
// messages only.
func (p *Process) LogTail(n int64) string {
	text, err := tail(p.File, n)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(text)
}

func tail(path string, n int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // read only
	if info, err := file.Stat(); err == nil && info.Size() > n {
		if _, err := file.Seek(-n, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(file)
}
