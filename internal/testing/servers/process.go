package servers

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopGrace is the time for an orderly end before a kill. It exceeds the programs' own shutdown
// limits.
const stopGrace = 45 * time.Second

// errNotRunning is the result of a signal to a process that has ended.
var errNotRunning = errors.New("not running")

// Process is one child process and its owner. It can start again after its end. The kernel ends it
// with the tests.
type Process struct {
	Path string
	Args []string
	Env  []string // nil means this process's environment
	Dir  string
	File string // receives stdout and stderr
	// OnOrphan is the signal that the kernel sends to the child when its parent dies; SIGKILL if 0.
	// A child's worker processes would survive that.
	OnOrphan syscall.Signal

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed after the wait for the child
	err  error         // the child's result, valid after done
}

// Start runs the child in its own process group. A Ctrl-C at the terminal therefore reaches the
// tests first.
func (p *Process) Start() error {
	out, err := os.OpenFile(p.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer out.Close() // the child has its own copy
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.Env, p.Dir, out, out
	cmd.SysProcAttr = childAttributes(cmp.Or(p.OnOrphan, syscall.SIGKILL))
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

// own starts the child and waits for it on a locked thread. The kernel's parent-death signal
// depends on the thread that forked, not on the process. On a shared thread Go could end an idle
// thread and thus kill the server.
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

// current returns the child's pid and the channel that closes when it ends. The pid is 0 before the
// first start.
func (p *Process) current() (int, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0, nil
	}
	return p.cmd.Process.Pid, p.done
}

// Pid returns the pid of the current or last child. It is 0 before the first start.
func (p *Process) Pid() int {
	pid, _ := p.current()
	return pid
}

// Running reports whether the child has started and not ended.
func (p *Process) Running() bool {
	pid, done := p.current()
	select {
	case <-done:
		return false
	default:
		return pid != 0
	}
}

// signal sends sig to the child's whole process group.
func (p *Process) signal(sig syscall.Signal) error {
	if !p.Running() {
		return errNotRunning
	}
	if err := syscall.Kill(-p.Pid(), sig); err != nil {
		return fmt.Errorf("send %v to pid %d: %w", sig, p.Pid(), err)
	}
	return nil
}

// Pause stops the child's threads (SIGSTOP). It returns when all of them have stopped.
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

// Resume continues a paused child (SIGCONT).
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Kill ends the child and returns after its end. A child that has already ended is not an error.
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

// Stop sends SIGTERM to the child and resumes it if it is paused. It kills the child after
// stopGrace and returns its result.
func (p *Process) Stop() error {
	pid, done := p.current()
	if !p.Running() {
		return errNotRunning
	}
	// Only the child itself gets the signal. Its helpers, such as Erlang's, would report a crash;
	// they end with the child.
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

// String returns the end of the child's output for messages.
func (p *Process) String() string { return p.LogTail(16 << 10) }

// LogTail returns the last n bytes of the child's output for messages. If the file is not readable,
// it returns the reason.
func (p *Process) LogTail(n int) string {
	text, err := os.ReadFile(p.File)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(text[max(0, len(text)-n):])
}
