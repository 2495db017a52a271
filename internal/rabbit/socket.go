package rabbit

import (
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// maxBuffered bounds the bytes that wait to be sent; a write beyond it ends the connection.
	maxBuffered = 64 << 20
	// maxReused is the largest buffer that is kept for the next write.
	maxReused = 1 << 20
	// flushTimeout bounds the sending of the rest when a socket is closed.
	flushTimeout = 100 * time.Millisecond
)

var errBufferFull = errors.New("the broker does not read: too many bytes wait to be sent")

// socket is a net.Conn whose Write never waits for the peer. One goroutine sends what was written
// and combines it into few system calls. A publish, an ack or a close therefore never blocks on a
// broker that has stopped reading, as RabbitMQ does under its memory alarm.
type socket struct {
	net.Conn
	limit int // of buffered bytes

	mu       sync.Mutex
	buffered []byte
	err      error // of the first failed write, or net.ErrClosed
	wake     chan struct{}
	ended    chan struct{}
}

// newSocket starts the sending goroutine, which ends with Close or abort.
func newSocket(c net.Conn) *socket {
	s := &socket{
		Conn: c, limit: maxBuffered, wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go s.send()
	return s
}

// Write buffers p. It returns the error of an earlier write.
func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	if len(s.buffered)+len(p) > s.limit {
		return 0, errBufferFull
	}
	s.buffered = append(s.buffered, p...)
	signal(s.wake)
	return len(p), nil
}

// signal wakes the goroutine that reads c and never blocks. One pending signal is enough, because
// the reader handles everything that is in the buffer.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// send writes until an error, or until Close and the buffer is empty.
func (s *socket) send() {
	defer close(s.ended)
	var spare []byte
	for range s.wake {
		batch, closed := s.swap(spare)
		if len(batch) > 0 {
			if _, err := s.Conn.Write(batch); err != nil {
				s.fail(err)
				return
			}
		}
		if closed {
			return
		}
		spare = nil
		if cap(batch) <= maxReused {
			spare = batch[:0]
		}
	}
}

// swap takes the buffered bytes and leaves an empty buffer, so that Write never waits for the
// network.
func (s *socket) swap(spare []byte) (batch []byte, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, s.buffered = s.buffered, spare
	return batch, s.err != nil
}

// fail closes the connection, so that the reader of the connection gets an error too.
func (s *socket) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	_ = s.Conn.Close()
}

// Close sends what is buffered, for flushTimeout at most, and closes.
func (s *socket) Close() error {
	s.mu.Lock()
	if s.err == nil {
		s.err = net.ErrClosed
		signal(s.wake)
	}
	s.mu.Unlock()
	_ = s.SetWriteDeadline(time.Now().Add(flushTimeout))
	<-s.ended
	return s.Conn.Close()
}

// abort closes at once.
func (s *socket) abort() {
	s.fail(net.ErrClosed)
	signal(s.wake)
}
