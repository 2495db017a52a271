package rawconn_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/rawconn"
	"flashsale.dev/seckill/internal/testing/must"
)

// pair returns the two ends of a connection.
func pair(t *testing.T) (near, far net.Conn) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	near = must.Get(net.Dial("tcp", l.Addr().String()))(t)
	far = must.Get(l.Accept())(t)
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return near, far
}

// TestConn_TransfersAllBytes sends more than the buffers hold in both directions at once, also from
// several callers.
func TestConn_TransfersAllBytes(t *testing.T) {
	near, far := pair(t)
	const callers, size = 4, 8 << 20
	var all sync.WaitGroup
	transfer := func(from, to net.Conn) {
		random := rand.New(rand.NewPCG(1, 2))
		for i := range byte(callers) {
			all.Go(func() {
				n, err := from.Write(bytes.Repeat([]byte{'a' + i}, size))
				assert.NoError(t, err)
				assert.Equal(t, size, n)
			})
		}
		all.Go(func() {
			got := make([]byte, callers*size)
			for n := 0; n < len(got); {
				part := got[n:min(len(got), n+1+random.IntN(100_000))]
				read, err := to.Read(part)
				if !assert.NoError(t, err) {
					return
				}
				n += read
			}
			for len(got) > 0 { // the bytes of a call are together
				assert.Equal(t, size, bytes.Count(got[:size], got[:1]))
				got = got[size:]
			}
		})
	}
	near, far = wrap(near), wrap(far)
	transfer(near, far)
	transfer(far, near)
	all.Wait()
}

// TestConn_FailsAsPackageNet makes each failure with a connection of package net and with a wrapped
// one, and compares the errors.
func TestConn_FailsAsPackageNet(t *testing.T) {
	over := time.Unix(1, 0)
	buffer := make([]byte, 10)
	reset := func(t *testing.T, far net.Conn) {
		require.NoError(t, far.(*net.TCPConn).SetLinger(0))
		require.NoError(t, far.Close())
	}
	cases := map[string]struct {
		fail func(t *testing.T, near, far net.Conn) (int, error)
		want error
	}{
		"end": {func(t *testing.T, near, far net.Conn) (int, error) {
			require.NoError(t, far.Close())
			return near.Read(buffer)
		}, io.EOF},
		"deadline of a read": {func(t *testing.T, near, _ net.Conn) (int, error) {
			require.NoError(t, near.SetReadDeadline(over))
			return near.Read(buffer)
		}, os.ErrDeadlineExceeded},
		"deadline during a read": {func(t *testing.T, near, _ net.Conn) (int, error) {
			require.NoError(t, near.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
			return near.Read(buffer)
		}, os.ErrDeadlineExceeded},
		"deadline of a write": {func(t *testing.T, near, _ net.Conn) (int, error) {
			require.NoError(t, near.SetWriteDeadline(over))
			return near.Write(buffer)
		}, os.ErrDeadlineExceeded},
		"closed before a read": {func(t *testing.T, near, _ net.Conn) (int, error) {
			require.NoError(t, near.Close())
			return near.Read(buffer)
		}, net.ErrClosed},
		"closed during a read": {func(_ *testing.T, near, _ net.Conn) (int, error) {
			time.AfterFunc(20*time.Millisecond, func() { _ = near.Close() })
			return near.Read(buffer)
		}, net.ErrClosed},
		"closed before a write": {func(t *testing.T, near, _ net.Conn) (int, error) {
			require.NoError(t, near.Close())
			return near.Write(buffer)
		}, net.ErrClosed},
		"reset during a read": {func(t *testing.T, near, far net.Conn) (int, error) {
			reset(t, far)
			return near.Read(buffer)
		}, syscall.ECONNRESET},
		"write after a reset": {func(t *testing.T, near, far net.Conn) (int, error) {
			reset(t, far)
			_, _ = near.Read(buffer)
			return near.Write(buffer)
		}, syscall.EPIPE},
		"nothing to read into": {func(_ *testing.T, near, _ net.Conn) (int, error) {
			return near.Read(nil)
		}, nil},
		"nothing to write": {func(_ *testing.T, near, _ net.Conn) (int, error) {
			return near.Write(nil)
		}, nil},
	}
	// seen is an error without its addresses.
	seen := func(n int, err error) any {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			return []any{
				n, op.Op, op.Net, op.Err.Error(), op.Timeout(), op.Source != nil, op.Addr != nil,
			}
		}
		return []any{n, err}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			n, err := c.fail(t, near, far)
			require.ErrorIs(t, err, c.want)
			near, far = pair(t)
			wrappedN, wrappedErr := c.fail(t, wrap(near), far)
			require.Equal(t, seen(n, err), seen(wrappedN, wrappedErr))
			require.ErrorIs(t, wrappedErr, c.want)
		})
	}
}

// TestConn_DeadlineEndsABlockedWrite checks that a write to a peer that does not read returns how
// much it has sent. Later writes go on after a new deadline.
func TestConn_DeadlineEndsABlockedWrite(t *testing.T) {
	near, far := pair(t)
	near = wrap(near)
	much := bytes.Repeat([]byte("0123456789"), 2<<20)
	require.NoError(t, near.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	sent, err := near.Write(much)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Greater(t, sent, 0)
	require.Less(t, sent, len(much))

	require.NoError(t, near.SetWriteDeadline(time.Time{}))
	go func() {
		_, _ = near.Write(much[sent:])
		_ = near.Close()
	}()
	require.True(t, bytes.Equal(much, must.Get(io.ReadAll(far))(t)))
}

// TestConn_OrdersMemory has a variable that one end writes before it sends, and the other end reads
// after it has received. The race detector fails it if it does not see the order.
func TestConn_OrdersMemory(t *testing.T) {
	for name, ends := range map[string][2]func(net.Conn) net.Conn{
		"to package net":   {wrap, plain},
		"from package net": {plain, wrap},
		"both":             {wrap, wrap},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			near, far = ends[0](near), ends[1](far)
			sum := 0
			go func() {
				sum++
				_, _ = near.Write([]byte{1})
			}()
			must.Get(far.Read(make([]byte, 1)))(t)
			require.Equal(t, 1, sum)
		})
	}
}

// TestConn_PoolsFindWhatItsPeerDid asks as the health check of a pool does. It has no bytes to read
// while the peer is quiet.
func TestConn_PoolsFindWhatItsPeerDid(t *testing.T) {
	near, far := pair(t)
	near = wrap(near)
	raw := must.Get(near.(syscall.Conn).SyscallConn())(t)
	// check returns the number of bytes that wait, at most one, or -1 if its function was not
	// called.
	check := func() int {
		n := -1
		require.NoError(t, raw.Read(func(fd uintptr) bool {
			n, _, _ = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
			return true
		}))
		return n
	}
	require.Equal(t, -1, check())
	must.Get(far.Write([]byte("x")))(t)
	require.Eventually(t, func() bool { return check() == 1 }, time.Minute, time.Millisecond)
	must.Get(near.Read(make([]byte, 1)))(t)
	require.Equal(t, -1, check())
	require.NoError(t, far.Close())
	require.Eventually(t, func() bool { return check() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, near.Close())
	require.ErrorIs(t, raw.Read(func(uintptr) bool { return true }), net.ErrClosed)
}

func plain(c net.Conn) net.Conn { return c }

func wrap(c net.Conn) net.Conn { return rawconn.New(c.(*net.TCPConn)) }

// TestWith_WrapsTCPAlone checks the connections and the errors of a function that connects.
func TestWith_WrapsTCPAlone(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	dial := rawconn.With(new(net.Dialer).DialContext)
	c := must.Get(dial(t.Context(), "tcp", l.Addr().String()))(t)
	require.IsType(t, new(rawconn.Conn), c)
	require.NoError(t, c.Close())
	require.NoError(t, l.Close())
	_, err := dial(t.Context(), "tcp", l.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	a, b := net.Pipe()
	defer func() { _, _ = a.Close(), b.Close() }()
	same := rawconn.With(func(context.Context, string, string) (net.Conn, error) { return a, nil })
	require.Same(t, a, must.Get(same(t.Context(), "", ""))(t))
}
