package rabbit

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestSocket_WriteNeverWaitsForItsPeer checks that a write returns at once although the peer does
// not read, and that Close then still returns.
func TestSocket_WriteNeverWaitsForItsPeer(t *testing.T) {
	near, far := net.Pipe() // a write to a pipe blocks until the peer reads it
	s := newSocket(near)
	for range 100 {
		require.Equal(t, 1024, must.Get(s.Write(make([]byte, 1024)))(t))
	}
	require.NoError(t, s.Close(), "Close returns although the peer does not read")
	_, err := s.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, far.Close())
}

// TestSocket_CloseSendsTheRestInOrder checks that Close first sends the buffered bytes, in order.
func TestSocket_CloseSendsTheRestInOrder(t *testing.T) {
	near, far := net.Pipe()
	s := newSocket(near)
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(far)
		got <- all
	}()
	var want []byte
	for i := range 1000 {
		must.Get(s.Write([]byte{byte(i), byte(i >> 8)}))(t)
		want = append(want, byte(i), byte(i>>8))
	}
	require.NoError(t, s.Close())
	require.Equal(t, want, <-got)
}

// TestSocket_BufferIsBounded checks that a write fails if the buffer is full.
func TestSocket_BufferIsBounded(t *testing.T) {
	near, far := net.Pipe()
	s := newSocket(near)
	s.limit = 1000
	var err error
	taken := 0
	for ; err == nil; taken++ {
		_, err = s.Write(make([]byte, 100))
	}
	require.ErrorIs(t, err, errBufferFull)
	require.LessOrEqual(t, taken, 21,
		"at most ten writes in progress, ten in the buffer and one refused")
	s.abort()
	require.NoError(t, far.Close())
}

func TestSocket_ReportsABrokenConnection(t *testing.T) {
	near, far := net.Pipe()
	s := newSocket(near)
	require.NoError(t, far.Close())
	must.Get(s.Write([]byte("x")))(t,
		"the socket accepts a write before it notices the broken connection")
	<-s.ended
	_, err := s.Write([]byte("x"))
	require.Error(t, err)
	_, err = s.Read(make([]byte, 1))
	require.Error(t, err)
	_ = s.Close()
}
