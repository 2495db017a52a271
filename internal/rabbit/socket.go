package rabbit

import (
	"errors"
	"net"
	"sync"
	"time"
)

// maxBuffered bounds what waits for a broker that does not read; more ends the connection.
const maxBuffered = 64 << 20

// keepSpare is the largest buffer that is kept for the next write.
const keepSpare = 1 << 20

// lastWrite bounds the writing of what is left when a socket is closed.
const lastWrite = 100 * time.Millisecond

var errUnread = errors.New("the broker reads nothing: too much is waiting to be sent")

// socket is a connection whose Write never waits for the peer: what is written is sent by one goroutine, which takes along
// whatever has come meanwhile. So a publish, an ack or a close cannot hang on a broker that has stopped reading, as
// RabbitMQ does on purpose under its memory alarm, and under load many messages share a system call.
type socket struct {
	net.Conn
	limit int // of waiting bytes

	mu      sync.Mutex
	waiting []byte
	err     error // of the first failed write, or net.ErrClosed
	wake    chan struct{}
	ended   chan struct{}
}

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c, limit: maxBuffered, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go s.send()
	return s
}

// Write takes p to be sent. Its error is that of an earlier write.
func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	if len(s.waiting)+len(p) > s.limit {
		return 0, errUnread
	}
	s.waiting = append(s.waiting, p...)
	s.signal()
	return len(p), nil
}

func (s *socket) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// send writes until an error or Close, and leaves nothing behind unsent that can be sent.
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
		if cap(batch) <= keepSpare {
			spare = batch[:0]
		}
	}
}

func (s *socket) swap(spare []byte) (batch []byte, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, s.waiting = s.waiting, spare
	return batch, s.err != nil
}

// fail makes the reading side see a failed write too.
func (s *socket) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	_ = s.Conn.Close()
}

// Close sends what is left, for a tenth of a second at most, and closes.
func (s *socket) Close() error {
	s.mu.Lock()
	if s.err == nil {
		s.err = net.ErrClosed
		s.signal()
	}
	s.mu.Unlock()
	_ = s.SetWriteDeadline(time.Now().Add(lastWrite))
	<-s.ended
	return s.Conn.Close()
}

// cut closes at once.
func (s *socket) cut() {
	s.fail(net.ErrClosed)
	s.signal()
}
