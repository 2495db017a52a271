package rawconn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Conn is a TCP connection whose Read and Write the scheduler does not observe.
type Conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
}

// New returns a connection that replaces c.
func New(c *net.TCPConn) *Conn {
	raw, err := c.SyscallConn()
	if err != nil {
		panic(err) // c was not made by package net
	}
	w := &Conn{TCPConn: c, raw: raw}
	w.in = transfer{op: "read", wait: raw.Read, step: w.in.read}
	w.out = transfer{op: "write", wait: raw.Write, step: w.out.write}
	return w
}

// Read reads into p as net.Conn's Read does.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return c.TCPConn.Read(p)
	}
	n, err := c.run(&c.in, p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write writes all of p as net.Conn's Write does.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return c.TCPConn.Write(p)
	}
	return c.run(&c.out, p)
}

// SyscallConn is for the health checks of connection pools. The Read of what it returns calls its
// function only if that would find something: bytes, the end or an error.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return checked{c.raw}, nil }

type checked struct{ syscall.RawConn }

func (c checked) Read(f func(fd uintptr) bool) error {
	return c.RawConn.Read(func(fd uintptr) bool {
		var b byte
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1,
			syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
		return errno == syscall.EAGAIN || f(fd)
	})
}

// run transfers p. Its errors are those of package net.
func (c *Conn) run(t *transfer, p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest, t.done, t.errno = p, 0, 0
	err := t.wait(t.step)
	t.rest = nil
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		failed.Op = t.op // it was raw-read or raw-write
	} else if err == nil && t.errno != 0 {
		local := c.LocalAddr()
		err = &net.OpError{
			Op: t.op, Net: local.Network(), Source: local, Addr: c.RemoteAddr(),
			Err: os.NewSyscallError(t.op, t.errno),
		}
	}
	return t.done, err
}

// transfer is one direction of a connection. Concurrent calls take turns.
type transfer struct {
	op   string                         // of the errors
	wait func(func(uintptr) bool) error // calls step when the socket is ready, until it returns true
	step func(fd uintptr) bool          // made once, because a closure of each call would be garbage

	mu    sync.Mutex
	rest  []byte // what the present call still has to fill or to send
	done  int    // the bytes that it has transferred
	errno syscall.Errno
}

func (t *transfer) read(fd uintptr) bool {
	t.done, t.errno = call(syscall.SYS_READ, fd, t.rest)
	if t.errno == syscall.EAGAIN {
		t.errno = 0
		return false
	}
	afterRead(fd)
	return true
}

func (t *transfer) write(fd uintptr) bool {
	beforeWrite()
	for len(t.rest) > 0 {
		n, errno := call(syscall.SYS_WRITE, fd, t.rest)
		if errno == syscall.EAGAIN {
			return false
		}
		if errno != 0 {
			t.errno = errno
			return true
		}
		t.done, t.rest = t.done+n, t.rest[n:]
	}
	return true
}

// call repeats a system call that a signal has interrupted.
func call(trap, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd,
			uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
