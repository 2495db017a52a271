package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a server may take over an orderly end before it is killed.
const stopGrace = 15 * time.Second

// errNotRunning is what a signal to a server that has ended comes to.
var errNotRunning = errors.New("not running")

// command is what has to be run, again at every restart.
type command struct {
	path string
	args []string
	env  []string // nil means this process's own
	dir  string
	log  string // file that takes stdout and stderr, appended to
	// workers of its own that would outlive a kill: the kernel asks it to end instead (SIGTERM) when its parent dies.
	workers bool
}

// process is one child and its owner. The zero value with a command has not been started.
type process struct {
	command

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed once the child has been waited for
}

// start runs the child, in a process group of its own so that a Ctrl-C at the terminal reaches the tests first.
func (p *process) start() error {
	out, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer out.Close() // the child holds its own copy
	cmd := exec.Command(p.path, p.args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.env, p.dir, out, out
	cmd.SysProcAttr = childAttributes(p.parentDeath())
	started, done := make(chan error, 1), make(chan struct{})
	go own(cmd, started, done)
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.path, err)
	}
	p.mu.Lock()
	p.cmd, p.done = cmd, done
	p.mu.Unlock()
	return nil
}

func (c command) parentDeath() syscall.Signal {
	if c.workers {
		return syscall.SIGTERM
	}
	return syscall.SIGKILL
}

// own starts the child and waits for it on one thread of its own. The kernel's parent-death signal is tied to the thread that
// forked, not to the process: on a shared thread, Go's ending an idle thread would kill the server.
func own(cmd *exec.Cmd, started chan<- error, done chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(done)
	err := cmd.Start()
	started <- err
	if err == nil {
		_ = cmd.Wait() // how it ended stands in its log; a killed server always "fails"
	}
}

// current returns the child's pid and the channel that closes when it ends; pid 0 if none was ever started.
func (p *process) current() (int, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0, nil
	}
	return p.cmd.Process.Pid, p.done
}

// running says whether the child has been started and not yet waited for.
func (p *process) running() bool {
	pid, done := p.current()
	if pid == 0 {
		return false
	}
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// signal sends sig to the child's whole group, helpers included.
func (p *process) signal(sig syscall.Signal) error {
	pid, _ := p.current()
	if !p.running() {
		return errNotRunning
	}
	if err := syscall.Kill(-pid, sig); err != nil {
		return fmt.Errorf("send %v to pid %d: %w", sig, pid, err)
	}
	return nil
}

// pause stops the child's threads and returns when they all have.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pid, done := p.current()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if stopped, err := paused(pid); stopped || err != nil {
			return err
		}
		select {
		case <-done:
			return errNotRunning
		case <-tick.C:
		}
	}
}

// kill ends the child at once and returns when it is gone. A child that has ended already is no error.
func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	if errors.Is(err, errNotRunning) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	_, done := p.current()
	<-done
	return nil
}

// stop asks the child to end, wakes it in case it is paused, and kills it after stopGrace.
func (p *process) stop() error {
	pid, done := p.current()
	if !p.running() {
		return nil
	}
	// Only the server itself is asked: its helpers (Erlang's, a shell's) end with it, and would take it for a crash.
	_ = syscall.Kill(pid, syscall.SIGTERM)
	_ = p.signal(syscall.SIGCONT)
	select {
	case <-done:
		return nil
	case <-time.After(stopGrace):
		return p.kill()
	}
}
